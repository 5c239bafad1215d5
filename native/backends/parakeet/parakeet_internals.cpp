#include "backends/parakeet/parakeet_internals.h"

#include "backends/backend_proc.h"
#include "backends/pages.h"
#include "backends/parakeet/parakeet_filters.h"
#include "backends/upstream_failure.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>
#include <parakeet.h>

namespace voxgate::parakeet_internals {

// Instead of ggml_backend_alloc_ctx_tensors_from_buft. The weights are read from end to end for each chunk.
// Test: "weights lie in large pages" (test/native/parakeet.test.ts).
static ggml_backend_buffer_t alloc_weights(ggml_context* context, ggml_backend_buffer_type_t type) {
  auto* buffer = needed_for_weights(ggml_backend_alloc_ctx_tensors_from_buft(context, type));
  ask_for_large_pages(buffer);
  return buffer;
}

} // namespace voxgate::parakeet_internals

// A copy with the changes of native/patches/whisper.
#include <patched/src/parakeet.cpp> // NOLINT(bugprone-suspicious-include): its statics are reached

#include "backends/parakeet/parakeet_graph.h" // these need the structs of parakeet.cpp
#include "backends/parakeet/parakeet_transducer.h"

struct parakeet_state* parakeet_init_state(parakeet_context* context) {
  std::unique_ptr<parakeet_state, decltype(&parakeet_free_state)> state(new parakeet_state(),
                                                                        parakeet_free_state);
  // It frees a state that it could not make.
  return upstream_init_state(context, state.get()) == nullptr ? (state.release(), nullptr) : state.release();
}

namespace voxgate::parakeet_internals {

bool should_abort(void* cancel_token) {
  return static_cast<const CancelToken*>(cancel_token)->cancelled();
}

void set_graph_abort(parakeet_state& state, const CancelToken* cancel) {
  for (ggml_backend_t backend : state.backends)
    set_backend_abort(backend, cancel != nullptr ? should_abort : nullptr, const_cast<CancelToken*>(cancel));
}

void set_audio_context(parakeet_context& context, int mel_frames) {
  context.model.hparams.n_audio_ctx = mel_frames;
}

bool run(parakeet_context& context, parakeet_state& state, std::span<const float> samples,
         int encoder_threads, const CancelToken& cancel, const KeywordTrie& keywords,
         const TokenCallback& on_token) {
  auto params = parakeet_full_default_params(PARAKEET_SAMPLING_GREEDY);
  params.abort_callback = should_abort;
  params.abort_callback_user_data = const_cast<CancelToken*>(&cancel);
  params.new_token_callback = [](parakeet_context*, parakeet_state* self, const parakeet_token_data* token,
                                 void* user) {
    static_cast<const Run*>(user)->on_token(*token, self->logits);
  };

  parakeet_reset_state(&state);
  if (parakeet_pcm_to_mel_with_state(&context, &state, samples.data(), static_cast<int>(samples.size()),
                                     encoder_threads) != 0)
    return false;
  // NeMo makes a frame of each full step and does not let the encoder see the one that begins at the end;
  // parakeet.cpp counts it.
  state.mel.n_len = state.mel.n_len_org = static_cast<int>(samples.size()) / PARAKEET_HOP_LENGTH;
  state.n_audio_ctx = state.mel.n_len;
  if (!parakeet_ensure_encode_sched(context, state, state.n_audio_ctx))
    throw std::bad_alloc();
  if (!parakeet_encode_internal(context, state, 0, encoder_threads, should_abort,
                                params.abort_callback_user_data))
    return false;
  ParakeetTransducer transducer(context, state, state.batch, 1, params);
  Run user{on_token, std::nullopt};
  if (!keywords.empty())
    user.lookahead.emplace(keywords, transducer, transducer.shape());
  params.new_token_callback_user_data = &user;
  if (!parakeet_decode(context, state, state.batch, 1, &params))
    return false;
  refine_timestamps_tdt(context.vocab, state.decoded_token_data);
  return true;
}

const std::vector<parakeet_token_data>& tokens(const parakeet_state& state) {
  return state.decoded_token_data;
}

const std::string& piece(const parakeet_context& context, int32_t id) {
  return context.vocab.id_to_token.at(id);
}

std::vector<std::string> pieces(const parakeet_context& context, size_t vocabulary) {
  std::vector<std::string> pieces;
  pieces.reserve(vocabulary);
  for (size_t id = 0; id < vocabulary; ++id)
    pieces.push_back(piece(context, static_cast<int32_t>(id)));
  return pieces;
}

uint64_t memory_bytes(const parakeet_context& context) {
  uint64_t bytes = 0;
  for (ggml_backend_buffer_t buffer : context.model.buffers)
    bytes += ggml_backend_buffer_get_size(buffer);
  return bytes;
}

uint64_t memory_bytes(const parakeet_state& state) {
  uint64_t bytes = 0;
  for (ggml_backend_buffer_t buffer : {state.enc_out_buffer, state.pred_out_buffer, state.lstm_state.buffer})
    bytes += ggml_backend_buffer_get_size(buffer);
  for (const auto* sched : {&state.sched_encode, &state.sched_decode}) {
    for (ggml_backend_t backend : state.backends)
      bytes += ggml_backend_sched_get_buffer_size(sched->sched, backend);
  }
  return bytes;
}

} // namespace voxgate::parakeet_internals
