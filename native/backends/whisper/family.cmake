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
                cur = ggml_flash_attn_ext(ctx0, Q, Kcross, Vcross, nullptr, KQscale, 0.0f, 0.0f);"
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
  1 "    ggml_backend_buffer_free(cache.buffer);" "    ggml_backend_buffer_free(cache.buffer); cache.buffer = nullptr;"
  1 "        ggml_context * ctx = ggml_init(params);

        const auto & hparams = model.hparams;

        const int n_vocab"
    "        const ggml_context_ptr owned(ggml_init(params)); ggml_context * ctx = owned.get();

        const auto & hparams = model.hparams;

        const int n_vocab"
  # of the voice activity model
  1 "        ggml_context * ctx = ggml_init(params);
        const auto & hparams"
    "        const ggml_context_ptr owned(ggml_init(params)); ggml_context * ctx = owned.get();
        const auto & hparams"
  2 "        ggml_free(ctx);
    }

    // allocate tensors" "
    }

    // allocate tensors"
  1 "static struct whisper_batch whisper_batch_init(int32_t n_tokens, int32_t n_seq_max) {
    whisper_batch batch = { 0, nullptr, nullptr, nullptr, nullptr, nullptr, };"
    "static void whisper_batch_free(struct whisper_batch); static struct whisper_batch whisper_batch_init(int32_t n_tokens, int32_t n_seq_max) {
    whisper_batch batch = { 0, nullptr, nullptr, nullptr, nullptr, nullptr, }; voxgate::Undo undo{batch, whisper_batch_free};"
  1 "(whisper_seq_id **) malloc(sizeof(whisper_seq_id *) * (n_tokens + 1))"
    "(whisper_seq_id **) calloc(n_tokens + 1, sizeof(whisper_seq_id *))"
  1 "    return batch;
}" "    undo.not_needed(); return batch;
}"
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
