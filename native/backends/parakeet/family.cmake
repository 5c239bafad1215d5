# parakeet.cpp 1.9.1 picks the token and its duration from log(softmax) over both together. Beside a sure token the
# durations' share is less than a float can hold: all of them become log(0), and the first one, 0 frames, wins. Most
# words then end where they start, and each costs further steps of the decoder. The repair ends the graph before the
# softmax; a version that has repaired itself fails here.
voxgate_patched_source(parakeet.cpp "${WHISPER_SOURCE_DIR}/src/parakeet.cpp"
  1 "ggml_build_forward_expand(gf, log_probs)" "(void) log_probs; ggml_build_forward_expand(gf, logits)"
  # the sum over the whole vocabulary is for a probability that is not read
  1 "    float token_sum = 0.0f;
    for (int i = 0; i < n_vocab_logits; ++i) {
        token_sum += expf(pstate.logits[i]);
    }
    float token_p = expf(token_logit) / token_sum;" "    const float token_p = 0;



"
  # most weights of a filter are zero: parakeet_filters.h
  1 "    const double eps = 5.960464477539063e-08;"
    "    const double eps = 5.960464477539063e-08; const auto groups = voxgate::filter_groups(filters.data, n_fb);"
  1 "            int k = 0;
            for (k = 0; k < n_fb - 3; k += 4) {"
    "            int k = 0;
            for (k = groups[j].first; k < std::min(n_fb - 3, groups[j].second); k += 4) {"
  1 "            for (; k < n_fb; k++) {
                sum += fft_out[k]" "            for (k = n_fb / 4 * 4; k < n_fb; k++) {
                sum += fft_out[k]"
  # the encoder's graph is ours on a CPU: parakeet_graph.h
  1 "static struct ggml_cgraph * parakeet_build_graph_encode("
    "static struct ggml_cgraph * parakeet_build_graph_encode(parakeet_context &, parakeet_state &); static struct ggml_cgraph * upstream_build_graph_encode("
  # the words of PARAKEET_ASSERT
  1 "            abort();" "            voxgate::upstream_failed(#x);"
  1 "ggml_backend_alloc_ctx_tensors_from_buft(ctx, buft)"
    "voxgate::needed_for_weights(ggml_backend_alloc_ctx_tensors_from_buft(ctx, buft))"
  # `delete` alone would leave the weights behind
  1 "        delete ctx;
        return nullptr;" "        parakeet_free(ctx);
        return nullptr;"
  1 "struct parakeet_state * parakeet_init_state(parakeet_context * ctx) {
    parakeet_state * state = new parakeet_state;"
    "static struct parakeet_state * upstream_init_state(parakeet_context * ctx, parakeet_state * state) {
"
  # start_ggml has set it, and several lanes at once would write it again
  1 "    ggml_log_set(g_state.log_callback, g_state.log_callback_user_data);

    ggml_backend_dev_t dev" "

    ggml_backend_dev_t dev"
  # the tokens of keywords are chosen by parakeet_transducer.h
  1 "static bool parakeet_decode("
    "static bool choose_token(parakeet_context &, parakeet_state &, const parakeet_full_params *, int, int, int, int &, float &); static bool parakeet_decode("
  1 "        if (best_token == blank_id) {
            if"
    "        if (!choose_token(pctx, pstate, params, t, tokens_emitted, duration, best_token, max_logit)) return false; if (best_token == blank_id) {
            if")

set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/parakeet_internals.cpp" PROPERTIES
  COMPILE_DEFINITIONS "PARAKEET_VERSION=\"${whisper_version}\"" COMPILE_OPTIONS "-w"
  OBJECT_DEPENDS "${VOXGATE_GENERATED}/patched/parakeet.cpp")
