// Compiles whisper.cpp 1.9.1 and reaches what it keeps private. What is compiled is a copy in which some of
// its functions are renamed to `upstream_...`, so that its calls arrive at functions of ours, and some calls
// of ggml's functions are exchanged (family.cmake).
//
// These are the seams. Each row names what is called, the lines of src/whisper.cpp that call it, what happens
// instead and why, and the test in native/test/whisper_seams_test.cpp that fails where it does not happen:
//
// log_mel_spectrogram (3890)
//   A fast Fourier transform instead of a naive one; nothing where the audio is already encoded.
//   Test: "the spectrogram is ours".
// whisper_compute_logprobs (6341), whisper_compute_probs (6399)
//   Loops that the compiler turns into vector instructions, instead of a call of expf for each of 51,865
//   tokens. Together with the spectrogram the originals took a tenth of the time of a short clip.
//   Test: "probabilities are ours, for every token".
// want_logits (7165), no_speech_probability (7175)
//   The probability at the start of the transcript. whisper.cpp fetches only the logits of the last token of
//   the prompt, and then reads the row of the first one, in which another token or another call left its own.
//   Test: "the probability of no speech is that of the audio at hand".
// align_window (7738), alignment_scores (2695)
//   An alignment of our own by dynamic time warping. whisper.cpp's takes the weights of the attention from a
//   state without flash attention, which is slower in everything, asserts where it cannot work, and reads
//   past its results. Ours computes the scores of the few heads that it needs beside the flash attention.
//   Tests: "words are aligned by our code", "an alignment whose decoder fails is a failure and not the end".
// upstream_failed (138)
//   An exception instead of the end of the process, where an assertion does not hold.
// compute_graph (206)
//   ggml's function with the threads that the lane may use now; nothing where the audio is already encoded.
//   Tests: "graphs are computed with the threads of the call", "what a detection has encoded is not encoded
//   again, and nothing else is taken for it".
// padded_positions (2055, 2284, 2481)
//   On a CPU, the positions without padding. whisper.cpp rounds the audio context up to a multiple of 256 and
//   attends to the positions in between without a mask. They hold zeros at first, which takes weight from the
//   speech, and later what an earlier call with a longer context left there: another caller's audio. On a GPU
//   `forget_audio` clears them instead. While a state is made they are rounded, so that its buffers are large
//   enough for both.
//   Test: "attention sees the positions of the audio and no others".
// UpstreamThread (3212, 7263, 7513, 7830, 8216)
//   whisper.cpp samples several texts at a time, each on a thread of its own, which it keeps in a vector.
//   Where the system refuses a second one, the first would be destroyed unjoined, and that ends the process.
//   Test: test/native/refused-threads.test.ts.
// whisper_init_state (3374), whisper_free (3740)
//   What was made before an exception, or before a failure to load, is freed.
//   Test: test/faults/fail-nth.test.ts.
// alloc_weights (1852), alloc_cache (1002)
//   ggml's functions, and large pages under the memory, which is read from end to end for every token.
//   Test: "weights and caches lie in large pages".
//
// The rest of the file reads and sets private fields. Two of them have a test there too: "a cancelled graph
// stops between two operations", "sampling begins with the same random numbers in every call".
//
// Over 300 lines because only this file sees the types that whisper.cpp keeps private.
#include "backends/throwing_malloc_calls.h" // comes first

#include "backends/whisper/whisper_internals.h"

#include "backends/backend_proc.h"
#include "backends/upstream_failure.h"
#include "backends/upstream_thread.h"
#include "backends/upstream_undo.h"
#include "backends/whisper/whisper_alignment.h"
#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_logits.h"
#include "backends/whisper/whisper_mel.h"
#include "backends/whisper/whisper_seams.h"
#include "status.h"

#include <whisper.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

struct whisper_batch;
struct whisper_filters;
struct whisper_mel;
static bool log_mel_spectrogram(whisper_state& state, const float* samples, int count, int rate, int frame,
                                int hop, int mels, int threads, const whisper_filters& filters, bool debug,
                                whisper_mel& mel);
static void whisper_compute_logprobs(const std::vector<float>& logits, int count,
                                     std::vector<float>& logprobs);
static void whisper_compute_probs(const std::vector<float>& logits, int count,
                                  const std::vector<float>& logprobs, std::vector<float>& probabilities);
static void want_logits(whisper_batch& batch, size_t token);
static float no_speech_probability(const whisper_context& context, const whisper_state& state, size_t token);
static void align_window(whisper_context* context, whisper_state* state, const whisper_full_params& params,
                         int first_segment, size_t segments, int seek, int frames, int filter_width,
                         int threads);
static ggml_tensor* alignment_scores(ggml_context* graph, const whisper_context& context, int layer,
                                     ggml_tensor* queries, ggml_tensor* keys, int positions,
                                     ggml_tensor* before);

#include <patched/whisper.cpp> // NOLINT(bugprone-suspicious-include): its statics are reached

using voxgate::CallScope;
using voxgate::seam_counts;

static bool log_mel_spectrogram(whisper_state&, const float* samples, int count, int rate, int frame, int hop,
                                int mels, int, const whisper_filters& filters, bool, whisper_mel& mel) {
  if (const auto* call = CallScope::current(); call != nullptr && call->skips_encoding()) {
    ++seam_counts.spectrograms_skipped;
    return true;
  }
  ++seam_counts.spectrograms;
  // 30 s of silence behind the audio, as whisper.cpp has it: the window may reach past the end.
  mel.n_mel = mels;
  mel.n_len = (count + 30 * rate) / hop;
  mel.n_len_org = 1 + (count - frame / 2) / hop;
  mel.data.resize(static_cast<size_t>(mel.n_mel) * static_cast<size_t>(mel.n_len));
  voxgate::whisper_log_mel({samples, static_cast<size_t>(count)}, filters.data, static_cast<size_t>(mels),
                           mel.data);
  return true;
}

static void whisper_compute_logprobs(const std::vector<float>& logits, int count,
                                     std::vector<float>& logprobs) {
  ++seam_counts.log_softmaxes;
  const auto size = static_cast<size_t>(count);
  voxgate::log_softmax(std::span(logits).first(size), std::span(logprobs).first(size));
}

static void whisper_compute_probs(const std::vector<float>&, int count, const std::vector<float>& logprobs,
                                  std::vector<float>& probabilities) {
  ++seam_counts.probabilities;
  const auto size = static_cast<size_t>(count);
  voxgate::exponentials(std::span(logprobs).first(size), std::span(probabilities).first(size));
}

static void want_logits(whisper_batch& batch, size_t token) {
  batch.logits[token] = 1;
}

static float no_speech_probability(const whisper_context& context, const whisper_state& state, size_t token) {
  ++seam_counts.no_speech_probabilities;
  const auto size = static_cast<size_t>(context.model.hparams.n_vocab);
  return voxgate::softmax_at(std::span(state.logits).subspan(token * size, size),
                             static_cast<size_t>(context.vocab.token_nosp));
}

namespace {

bool heads_fit(const whisper_aheads& heads, const whisper_hparams& hparams) {
  for (size_t i = 0; i < heads.n_heads; ++i) {
    if (heads.heads[i].n_text_layer >= hparams.n_text_layer || heads.heads[i].n_head >= hparams.n_text_head)
      return false;
  }
  return true;
}

} // namespace

static ggml_tensor* alignment_scores(ggml_context* graph, const whisper_context& context, int layer,
                                     ggml_tensor* queries, ggml_tensor* keys, int positions,
                                     ggml_tensor* before) {
  const auto& hparams = context.model.hparams;
  ggml_tensor* scores = before;
  for (const uint32_t head :
       get_alignment_heads_by_layer(context.params, layer, hparams.n_text_layer, hparams.n_text_head)) {
    auto* key = ggml_view_2d(graph, keys, keys->ne[0], positions, keys->nb[1], head * keys->nb[2]);
    auto* query =
        ggml_view_2d(graph, queries, queries->ne[0], queries->ne[1], queries->nb[1], head * queries->nb[2]);
    auto* product = ggml_mul_mat(graph, key, ggml_cont(graph, query));
    scores = scores == nullptr ? product : ggml_concat(graph, scores, product, 2);
  }
  return scores;
}

namespace {

// What the decoder is given to align a text: the prompt of a transcript without times, the text and its end.
struct AlignmentTokens {
  std::vector<whisper_token> all;
  size_t before; // the number of tokens before the last one of the prompt
  std::vector<whisper_token_data*> text;
};

AlignmentTokens alignment_tokens(whisper_context* context, std::span<whisper_segment> segments,
                                 const whisper_full_params& params) {
  AlignmentTokens tokens{{whisper_token_sot(context)}, 0, {}};
  if (whisper_is_multilingual(context) != 0) {
    tokens.all.push_back(whisper_token_lang(context, whisper_lang_id(params.language)));
    tokens.all.push_back(params.translate ? whisper_token_translate(context)
                                          : whisper_token_transcribe(context));
  }
  tokens.before = tokens.all.size();
  tokens.all.push_back(whisper_token_not(context));
  for (auto& segment : segments) {
    for (auto& token : segment.tokens) {
      if (token.id >= whisper_token_eot(context))
        continue;
      tokens.all.push_back(token.id);
      tokens.text.push_back(&token);
    }
  }
  tokens.all.push_back(whisper_token_eot(context));
  return tokens;
}

} // namespace

// Text that is not aligned keeps t_dtw == -1.
static void align_window(whisper_context* context, whisper_state* state, const whisper_full_params& params,
                         int first_segment, size_t segments, int seek, int frames, int filter_width,
                         int threads) {
  const auto& hparams = context->model.hparams;
  const int positions = state->exp_n_audio_ctx > 0 ? state->exp_n_audio_ctx : hparams.n_audio_ctx;
  const auto used =
      static_cast<size_t>(std::clamp(frames / 2, 0, positions)); // a frame has 10 ms, a position 20
  const auto tokens = alignment_tokens(
      context, std::span(state->result_all).subspan(static_cast<size_t>(first_segment), segments), params);
  const auto count = tokens.all.size();
  if (tokens.text.empty() || used <= static_cast<size_t>(filter_width) ||
      count > static_cast<size_t>(hparams.n_text_ctx))
    return;
  ++seam_counts.alignments;
  whisper_kv_cache_clear(state->kv_self);
  whisper_batch_prep_legacy(state->batch, tokens.all.data(), static_cast<int>(count), 0, 0);
  state->batch.logits[count - 1] = 0; // the graph computes none
  if (!whisper_decode_internal(*context, *state, state->batch, threads, true, nullptr, nullptr)) {
    if (auto* call = CallScope::current(); call != nullptr && CallScope::should_abort(call))
      return;
    throw voxgate::Failure(voxgate::StatusCode::inference_failed, "Whisper could not align its text");
  }
  const auto* scores = state->aheads_cross_QKs;
  std::vector<float> values(static_cast<size_t>(ggml_nelements(scores)));
  ggml_backend_tensor_get(scores, values.data(), 0, values.size() * sizeof(float));
  const auto head_size = static_cast<float>(hparams.n_text_state) / static_cast<float>(hparams.n_text_head);
  const auto ends = voxgate::token_ends({.values = values,
                                         .heads = static_cast<size_t>(scores->ne[2]),
                                         .tokens = count,
                                         .positions = static_cast<size_t>(positions),
                                         .scale = std::pow(head_size, -0.25F)},
                                        used, tokens.before);
  for (size_t i = 0; i < ends.size(); ++i)
    tokens.text[i]->t_dtw = seek + 2 * ends[i];
}

struct whisper_state* whisper_init_state(whisper_context* context) {
  std::unique_ptr<whisper_state, decltype(&whisper_free_state)> state(new whisper_state(),
                                                                      whisper_free_state);
  // It frees a state that it could not make.
  return upstream_init_state(context, state.get()) == nullptr ? (state.release(), nullptr) : state.release();
}

namespace voxgate::whisper_internals {

std::shared_ptr<whisper_context> view_of(std::shared_ptr<const whisper_context> whole,
                                         const whisper_context_params& params) {
  auto view = std::make_unique<whisper_context>();
  view->t_load_us = whole->t_load_us;
  view->t_start_us = whole->t_start_us;
  view->wtype = whole->wtype;
  view->itype = whole->itype;
  view->params = params;
  view->model = whole->model; // pointers to the tensors
  view->vocab = whole->vocab;
  view->path_model = whole->path_model;
  // The deleter gives up the weights itself: a weak pointer to the view would otherwise keep them alive.
  const auto free_view = [whole = std::move(whole)](whisper_context* context) mutable {
    delete context;
    whole.reset();
  };
  return {view.release(), free_view};
}

void use_alignment(whisper_context& context, bool aligned) {
  auto& params = context.params;
  const auto& hparams = context.model.hparams;
  params.dtw_token_timestamps = aligned;
  if (!aligned)
    return;
  params.dtw_aheads_preset = published_heads({hparams.n_vocab, hparams.n_audio_layer, hparams.n_text_layer});
  const auto known = g_aheads.find(params.dtw_aheads_preset);
  if (known != g_aheads.end() && heads_fit(known->second, hparams))
    return;
  params.dtw_aheads_preset = WHISPER_AHEADS_N_TOP_MOST;
  params.dtw_n_top = std::max(1, hparams.n_text_layer / 2);
}

void reset_sampling(whisper_state& state) {
  state.decoders[0].rng = std::mt19937(0);
}

void forget_audio(whisper_state& state) {
  ggml_backend_buffer_clear(state.kv_cross.buffer, 0);
  ggml_backend_buffer_clear(state.kv_pad.buffer, 0);
}

void set_audio_context(whisper_state& state, int audio_context) {
  state.exp_n_audio_ctx = audio_context;
}

std::array<ggml_backend_sched_t, 3> audio_graphs(const whisper_state& state) {
  return {state.sched_conv.sched, state.sched_encode.sched, state.sched_cross.sched};
}

void set_graph_abort(whisper_state& state, ggml_abort_callback should_abort, void* user_data) {
  for (ggml_backend_t backend : state.backends)
    set_backend_abort(backend, should_abort, user_data);
}

bool uses_gpu(const whisper_context& context) {
  return context.params.use_gpu;
}

const std::string& token_bytes(const whisper_context& context, int32_t id) {
  return context.vocab.id_to_token.at(id);
}

int32_t find_token(const whisper_context& context, std::string_view bytes) {
  const auto found = context.vocab.token_to_id.find(std::string(bytes));
  return found == context.vocab.token_to_id.end() ? -1 : found->second;
}

size_t longest_token(const whisper_context& context) {
  size_t longest = 0;
  for (const auto& [bytes, id] : context.vocab.token_to_id)
    longest = id < context.vocab.token_eot ? std::max(longest, bytes.size()) : longest;
  return longest;
}

int language_count(const whisper_context& context) {
  return context.vocab.is_multilingual() ? context.vocab.num_languages() : 1;
}

uint64_t memory_bytes(const whisper_context& context) {
  uint64_t bytes = 0;
  for (ggml_backend_buffer_t buffer : context.model.buffers)
    bytes += ggml_backend_buffer_get_size(buffer);
  return bytes;
}

uint64_t memory_bytes(const whisper_state& state) {
  uint64_t bytes = 0;
  for (const auto* cache : {&state.kv_self, &state.kv_cross, &state.kv_pad})
    bytes += cache->buffer != nullptr ? ggml_backend_buffer_get_size(cache->buffer) : 0;
  for (const auto* sched :
       {&state.sched_conv, &state.sched_encode, &state.sched_cross, &state.sched_decode}) {
    for (ggml_backend_t backend : state.backends)
      bytes += ggml_backend_sched_get_buffer_size(sched->sched, backend);
  }
  return bytes;
}

} // namespace voxgate::whisper_internals
