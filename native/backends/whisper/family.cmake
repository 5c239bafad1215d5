# Where our code stands in front of whisper.cpp's. whisper_internals.cpp holds the table that says why, and what tests
# that it does: a row there for each piece here.
voxgate_patched_source(whisper.cpp "${WHISPER_SOURCE_DIR}/src/whisper.cpp"
  1 "static bool log_mel_spectrogram(" "static bool upstream_log_mel_spectrogram("
  1 "ggml_backend_sched_graph_compute(" "voxgate::compute_graph("
  2 "GGML_PAD(n_ctx, 256)" "voxgate::padded_positions(n_ctx)"
  1 "GGML_PAD(n_audio_ctx, 256)" "voxgate::padded_positions(n_audio_ctx)"
  # of Whisper, and of the voice activity model, which only a test loads
  2 "ggml_backend_alloc_ctx_tensors_from_buft(" "voxgate::alloc_weights("
  1 "cache.buffer = ggml_backend_alloc_ctx_tensors(" "cache.buffer = voxgate::alloc_cache("
  # the words of WHISPER_ASSERT
  1 "            abort();" "            voxgate::upstream_failed(#x);"
  1 "                cur = ggml_flash_attn_ext(ctx0, Q, Kcross, Vcross, nullptr, KQscale, 0.0f, 0.0f);"
    "                if (save_alignment_heads_QKs) { aheads_cross_QKs = alignment_scores(ctx0, wctx, il, Q, Kcross, n_audio_ctx, aheads_cross_QKs); }
                cur = attend_to_audio(ctx0, Q, Kcross, Vcross, KQscale);"
  1 "                cur = ggml_flash_attn_ext(ctx0, Q, K, V, nullptr, KQscale, 0.0f, 0.0f);

                cur = ggml_reshape_2d(ctx0, cur, n_state, n_ctx);"
    "                cur = attend_to_audio(ctx0, Q, K, V, KQscale);

                cur = ggml_reshape_2d(ctx0, cur, n_state, n_ctx);"
  1 "ggml_cpy(ctx0, Kcur, k)" "into_cache(ctx0, wstate, Kcur, kv_self.k, k, il)"
  1 "ggml_cpy(ctx0, Vcur, v)" "into_cache(ctx0, wstate, Vcur, kv_self.v, v, il)"
  1 "const uint32_t pad = whisper_kv_cache_get_padding(wctx);" "const uint32_t pad = cache_padding(wstate);"
  1 "ggml_view_2d(ctx0, model.e_pe, model.e_pe->ne[0], n_ctx, e_pe_stride, e_pe_offset);"
    "places(ctx0, model.e_pe, n_ctx);"
  1 "    struct ggml_tensor * logits = ggml_mul_mat(ctx0, model.d_te, cur);"
    "    struct ggml_tensor * logits = ggml_mul_mat(ctx0, model.d_te, wanted_rows(ctx0, cur, batch, worst_case));"
  1 "    logits_out.resize(n_tokens*n_vocab);
    for (int i = 0; i < n_tokens; i++) {
        if (batch.logits[i] == 0) {
            continue;
        }
        ggml_backend_tensor_get(logits, logits_out.data() + (n_vocab*i), sizeof(float)*(n_vocab*i), sizeof(float)*n_vocab);
    }
"
    "    if (!save_alignment_heads_QKs) { read_logits(logits, logits_out); }






"
  1 "reserve(ctx->vocab.n_vocab * ctx->model.hparams.n_text_ctx)"
    "reserve(ctx->vocab.n_vocab * WHISPER_MAX_DECODERS)"
  # an alignment wants no text, so its graph ends with the scores
  1 "    if (wctx.params.dtw_token_timestamps && aheads_cross_QKs != nullptr) {
        aheads_cross_QKs = ggml_transpose(ctx0, aheads_cross_QKs);
        aheads_cross_QKs = ggml_cont(ctx0, aheads_cross_QKs);
        if (save_alignment_heads_QKs) {
            ggml_build_forward_expand(gf, aheads_cross_QKs);
            wstate.aheads_cross_QKs = aheads_cross_QKs;
        }
    }

    ggml_build_forward_expand(gf, logits);
"
    "    if (save_alignment_heads_QKs) {
        wstate.aheads_cross_QKs = aheads_cross_QKs;
        logits = aheads_cross_QKs;
    }

    ggml_build_forward_expand(gf, logits);





"
  # the graphs of the audio run one after the other, so on a CPU they share a scheduler with its memory
  1 "    sched = ggml_backend_sched_new(" "    if (sched == nullptr) sched = ggml_backend_sched_new("
  1 "whisper_sched_graph_init(state->sched_encode, " "whisper_sched_graph_init(shared_memory(*state, state->sched_encode), "
  1 "whisper_sched_graph_init(state->sched_cross, " "whisper_sched_graph_init(shared_memory(*state, state->sched_cross), "
  1 "ggml_view_tensor(ctx0, wstate.embd_conv)" "ggml_view_tensor(ctx0, moved_out(wstate, wstate.embd_conv))"
  1 "ggml_view_tensor(ctx0, wstate.embd_enc)" "ggml_view_tensor(ctx0, moved_out(wstate, wstate.embd_enc))"
  1 "    struct ggml_tensor * embd_conv = nullptr;"
    "    struct ggml_tensor * embd_conv = nullptr; ggml_backend_buffer_ptr between_graphs; voxgate::StepGraph step;"
  1 "        ggml_backend_sched_free(state->sched_encode.sched);
        ggml_backend_sched_free(state->sched_cross.sched);"
    "        if (state->sched_encode.sched != state->sched_conv.sched) { ggml_backend_sched_free(state->sched_encode.sched); }
        if (state->sched_cross.sched != state->sched_conv.sched) { ggml_backend_sched_free(state->sched_cross.sched); }"
  2 "    ggml_backend_buffer_clear(cache.buffer, 0);" "    voxgate::clear_cache(cache.buffer);"
  # the views of a model share it
  1 "    whisper_vocab vocab;"
    "    std::shared_ptr<whisper_vocab> vocabulary = std::make_shared<whisper_vocab>(); whisper_vocab & vocab = *vocabulary;"
  # reserve_tokens makes a cache again that it has freed, and may get no memory for it
  1 "    ggml_backend_buffer_free(cache.buffer);" "    ggml_backend_buffer_free(cache.buffer); cache.buffer = nullptr;"
  # `delete` alone would leave the weights behind
  1 "        delete ctx;
        return nullptr;" "        whisper_free(ctx);
        return nullptr;"
  1 "struct whisper_state * whisper_init_state(whisper_context * ctx) {
    whisper_state * state = new whisper_state;"
    "static struct whisper_state * upstream_init_state(whisper_context * ctx, whisper_state * state) {
"
  # start_ggml has set it, and several lanes at once would write it again
  1 "    ggml_log_set(g_state.log_callback, g_state.log_callback_user_data);

    ggml_backend_dev_t dev" "

    ggml_backend_dev_t dev")

set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/whisper_internals.cpp" PROPERTIES
  COMPILE_DEFINITIONS "WHISPER_VERSION=\"${whisper_version}\"" COMPILE_OPTIONS "-w"
  OBJECT_DEPENDS "${VOXGATE_GENERATED}/patched/whisper.cpp")
