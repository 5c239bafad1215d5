// Compiles whisper.cpp 1.9.1 and reaches what it keeps private. What is compiled is a copy in which some of
// its functions are renamed to `upstream_...`, so that its calls arrive at functions of ours, and some calls
// of ggml's functions are exchanged (native/patches/whisper).
//
// These are the seams. Each row names what is called, the lines of src/whisper.cpp that call it, what happens
// instead and why, and the test in native/test/whisper_seams_test.cpp that fails where it does not happen:
//
// log_mel_spectrogram (3890)
//   A fast Fourier transform instead of a naive one; nothing where the audio is already encoded.
//   Test: "the spectrogram is ours".
// alignment_scores (2695)
//   The scores of the few heads that an alignment needs, beside the flash attention. whisper.cpp has them
//   only in a state without flash attention, which is slower in everything. The alignment itself is
//   whisper_alignment.cpp. Test: "words are aligned by our code".
// wanted_rows (2814), read_logits (2949)
//   Logits from the first token on for which they are wanted. whisper.cpp computes them for each token of a
//   prompt and makes room for them, 207 KB a token, also where it aligns words and computes none.
//   Test: "a prompt has logits from the start of the transcript on".
// clear_cache (1008, 1088)
//   Pages that are given back read as zero. whisper.cpp writes zeros into the cache for texts before each
//   prompt: 12 MB for five texts at once, of which most are then not used.
//   Test: "the cache for texts holds what a call needs, and nothing after it".
// whisper_context::vocabulary (947)
//   The views of a model share it. Test: "the views of a model share its vocabulary".
// shared_memory (3490, 3506), moved_out (2067, 2296)
//   On a CPU, one scheduler with its memory for the three graphs of the audio, which run one after the other.
//   What a graph leaves for the next one is moved out of that memory. whisper.cpp has a buffer for each.
//   Test: "the graphs of the audio share their memory".
// upstream_failed (138)
//   An exception instead of the end of the process, where an assertion does not hold.
// compute_graph (206)
//   ggml's function with the threads that the lane may use now; nothing where the audio is already encoded.
//   Tests: "graphs are computed with the threads of the call", "what a detection has encoded is not encoded
//   again, and nothing else is taken for it".
// into_cache (2589, 2590), cache_padding (2876), whisper_state::step (878)
//   On a CPU and with CUDA the rows of the cache that a step writes are an input, and attention sees a
//   multiple of 32 or 256 of them. So the graph of a step is that of the step before: it is made once for
//   them, and CUDA launches it as a whole. whisper.cpp makes and launches it anew for each token.
//   Test: native/test/whisper_gpu_seams_test.cpp, "the graph of a step is kept".
// padded_positions (2055, 2284, 2481)
//   The positions without padding. whisper.cpp rounds the audio context up to a multiple of 256 and
//   attends to the positions in between without a mask. They hold zeros at first, which takes weight from the
//   speech, and later what an earlier call with a longer context left there: another caller's audio. While a
//   state is made they are rounded, so that its buffers are those of whisper.cpp. Test: "attention sees the
//   positions of the audio and no others".
// places (2088)
//   The places of the positions that are encoded, which may leave some out (whisper_window.h). whisper.cpp
//   encodes the first ones. Test: native/test/whisper_window_test.cpp, "silence behind the audio is sparse".
// attend_to_audio (2147, 2694)
//   Keys that stand for several positions count as often. Test: the same.
// whisper_init_state (3374), whisper_free (3740)
//   What was made before an exception, or before a failure to load, is freed.
//   Test: test/deep/vulkan.test.ts.
// alloc_weights (1852), alloc_cache (1002)
//   ggml's functions, and large pages under the memory, which is read from end to end for every token. Where
//   there is no memory for the weights, a failure: whisper.cpp goes on without.
//   Tests: "weights and caches lie in large pages"; test/deep/vulkan.test.ts.
//
// The rest of the file reads and sets private fields, and calls private functions: the loop over windows and
// texts is ours (whisper_transcript.cpp), and whisper_full is not used. Two of them have a test there too: "a
// cancelled graph stops between two operations", "sampling begins with the same random numbers in every
// call".
//
// Only this file sees the types that whisper.cpp keeps private.
#include "backends/whisper/whisper_internals.h"

#include "backend.h"
#include "backends/backend_proc.h"
#include "backends/large_pages.h"
#include "backends/upstream_failure.h"
#include "backends/whisper/whisper_alignment.h"
#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_logits.h"
#include "backends/whisper/whisper_mel.h"
#include "backends/whisper/whisper_seams.h"
#include "kernels/unmasked_attention.h"
#include "status.h"

#include <whisper.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <vector>

struct whisper_batch;
struct whisper_filters;
struct whisper_mel;
static bool log_mel_spectrogram(whisper_state& state, const float* samples, int count, int rate, int frame,
                                int hop, int mels, int threads, const whisper_filters& filters, bool debug,
                                whisper_mel& mel);
static ggml_tensor* alignment_scores(ggml_context* graph, const whisper_context& context, int layer,
                                     ggml_tensor* queries, ggml_tensor* keys, int positions,
                                     ggml_tensor* before);
static ggml_tensor* places(ggml_context* graph, ggml_tensor* of_all_positions, int positions);
static ggml_tensor* attend_to_audio(ggml_context* graph, ggml_tensor* queries, ggml_tensor* keys,
                                    ggml_tensor* values, float scale);
static ggml_tensor* wanted_rows(ggml_context* graph, ggml_tensor* rows, const whisper_batch& batch,
                                bool worst_case);
static ggml_tensor* into_cache(ggml_context* graph, const whisper_state& state, ggml_tensor* values,
                               ggml_tensor* cache, ggml_tensor* place, int layer);
static uint32_t cache_padding(const whisper_state& state);
static void read_logits(const ggml_tensor* logits, std::vector<float>& values);
struct whisper_sched;
static whisper_sched& shared_memory(const whisper_state& state, whisper_sched& scheduler);
static ggml_tensor* moved_out(whisper_state& state, ggml_tensor* output);

#include <patched/src/whisper.cpp> // NOLINT(bugprone-suspicious-include): its statics are reached

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

static ggml_tensor* places(ggml_context* graph, ggml_tensor* of_all_positions, int positions) {
  const auto rows = [&](int64_t count, int first, int stride) {
    const auto row = of_all_positions->nb[1];
    return ggml_view_2d(graph, of_all_positions, of_all_positions->ne[0], count,
                        row * static_cast<size_t>(stride), row * static_cast<size_t>(first));
  };
  const auto* call = CallScope::current();
  if (call == nullptr || !call->window().is_sparse())
    return rows(positions, 0, 1);
  const auto& window = call->window();
  ++seam_counts.sparse_windows;
  return ggml_concat(graph, rows(window.dense, 0, 1),
                     rows(window.positions - window.dense, window.first_sparse(), window.stride), 1);
}

// All layers of a graph have the same offsets, which voxgate::compute_graph fills in.
static ggml_tensor* attend_to_audio(ggml_context* graph, ggml_tensor* queries, ggml_tensor* keys,
                                    ggml_tensor* values, float scale) {
  const auto* call = CallScope::current();
  ggml_tensor* offsets = nullptr;
  if (call != nullptr && call->window().is_sparse()) {
    offsets = ggml_get_tensor(graph, voxgate::kScoreOffsets);
    if (offsets == nullptr) {
      offsets = ggml_new_tensor_2d(graph, GGML_TYPE_F16, keys->ne[1], queries->ne[1]);
      ggml_set_name(offsets, voxgate::kScoreOffsets);
      ggml_set_input(offsets);
    }
  }
  auto* attention = ggml_flash_attn_ext(graph, queries, keys, values, offsets, scale, 0, 0);
  if (offsets != nullptr)
    voxgate::tell_same_rows(attention);
  return attention;
}

// From the first token whose logits are wanted. While a state is made, as many as there can be texts.
static ggml_tensor* wanted_rows(ggml_context* graph, ggml_tensor* rows, const whisper_batch& batch,
                                bool worst_case) {
  int first = worst_case ? std::max(0, batch.n_tokens - WHISPER_MAX_DECODERS) : 0;
  while (!worst_case && first + 1 < batch.n_tokens && batch.logits[first] == 0)
    ++first;
  if (first == 0)
    return rows;
  ++seam_counts.shortened_logits;
  return ggml_view_2d(graph, rows, rows->ne[0], batch.n_tokens - first, rows->nb[1],
                      static_cast<size_t>(first) * rows->nb[1]);
}

// With Vulkan attention rounds otherwise where it sees rows that no text has.
static bool keeps_steps(const whisper_state& state) {
  return state.backends.size() == 1 ||
         std::string_view(ggml_backend_name(state.backends.front())).starts_with("CUDA");
}

// The rows of the cache are an input, so that the graph of a step is that of the step before.
static ggml_tensor* into_cache(ggml_context* graph, const whisper_state& state, ggml_tensor* values,
                               ggml_tensor* cache, ggml_tensor* place, int layer) {
  if (!keeps_steps(state))
    return ggml_cpy(graph, values, place);
  auto* rows = ggml_get_tensor(graph, voxgate::kCacheRows);
  if (rows == nullptr) {
    rows = ggml_new_tensor_1d(graph, GGML_TYPE_I64, values->ne[1]);
    ggml_set_name(rows, voxgate::kCacheRows);
    ggml_set_input(rows);
  }
  const auto row = ggml_row_size(cache->type, values->ne[0]);
  auto* of_layer = ggml_view_2d(graph, cache, values->ne[0], state.kv_self.size, row,
                                row * state.kv_self.size * static_cast<size_t>(layer));
  return ggml_set_rows(graph, of_layer, values, rows);
}

// With CUDA what whisper.cpp itself takes where that library is linked to it. On a CPU each row takes time,
// though nothing is read of those that no text has.
static uint32_t cache_padding(const whisper_state& state) {
  if (!keeps_steps(state))
    return 1;
  return state.backends.size() == 1 ? 32 : 256;
}

static void read_logits(const ggml_tensor* logits, std::vector<float>& values) {
  values.resize(static_cast<size_t>(ggml_nelements(logits)));
  ggml_backend_tensor_get(logits, values.data(), 0, ggml_nbytes(logits));
}

static whisper_sched& shared_memory(const whisper_state& state, whisper_sched& scheduler) {
  if (state.backends.size() == 1)
    scheduler.sched = state.sched_conv.sched;
  return scheduler;
}

static ggml_tensor* moved_out(whisper_state& state, ggml_tensor* output) {
  if (state.backends.size() > 1)
    return output;
  const auto bytes = ggml_nbytes(output);
  auto& memory = state.between_graphs;
  if (!memory || ggml_backend_buffer_get_size(memory.get()) < bytes)
    memory.reset(ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), bytes));
  if (!memory)
    throw voxgate::Failure(voxgate::StatusCode::out_of_memory, "Not enough memory for the encoder");
  auto* const begin = ggml_backend_buffer_get_base(memory.get());
  ggml_backend_tensor_get(output, begin, 0, bytes);
  output->buffer = memory.get(); // the other one is freed where the scheduler gets a larger one
  output->data = begin;
  return output;
}

namespace {

// Each layer has its keys and values of the first tokens, and mostly no more, in another large page.
void use_small_pages(const whisper_state& state) {
  const auto texts = voxgate::whisper_internals::text_cache(state);
  voxgate::refuse_large_pages(texts.data(), texts.size());
}

} // namespace

struct whisper_state* whisper_init_state(whisper_context* context) {
  std::unique_ptr<whisper_state, decltype(&whisper_free_state)> state(new whisper_state(),
                                                                      whisper_free_state);
  // It frees a state that it could not make.
  if (upstream_init_state(context, state.get()) == nullptr)
    return (state.release(), nullptr);
  use_small_pages(*state);
  return state.release();
}

namespace voxgate::whisper_internals {

std::shared_ptr<whisper_context> view_of(std::shared_ptr<const whisper_context> whole,
                                         const whisper_context_params& params) {
  // NOLINTNEXTLINE(modernize-make-unique): that would make a second context to move from
  std::unique_ptr<whisper_context> view(new whisper_context{.vocabulary = whole->vocabulary});
  view->t_load_us = whole->t_load_us;
  view->t_start_us = whole->t_start_us;
  view->wtype = whole->wtype;
  view->itype = whole->itype;
  view->params = params;
  view->model = whole->model; // pointers to the tensors
  view->path_model = whole->path_model;
  // The deleter gives up the weights itself: a weak pointer to the view would otherwise keep them alive.
  const auto free_view = [whole = std::move(whole)](whisper_context* context) mutable {
    delete context;
    whole.reset();
  };
  return {view.release(), free_view};
}

void choose_alignment_heads(whisper_context& context) {
  auto& params = context.params;
  const auto& hparams = context.model.hparams;
  params.dtw_aheads_preset = published_heads({hparams.n_vocab, hparams.n_audio_layer, hparams.n_text_layer});
  const auto known = g_aheads.find(params.dtw_aheads_preset);
  if (known != g_aheads.end() && heads_fit(known->second, hparams))
    return;
  params.dtw_aheads_preset = WHISPER_AHEADS_N_TOP_MOST;
  params.dtw_n_top = std::max(1, hparams.n_text_layer / 2);
}

namespace {

void forget_step(whisper_state& state) {
  if (state.step.graph == nullptr)
    return;
  state.step = {};
  ggml_backend_sched_reset(state.sched_decode.sched);
}

} // namespace

void set_audio_context(whisper_state& state, int audio_context) {
  forget_step(state); // it attends to the positions of the audio before
  // A GPU adds up the masked rows of earlier texts, too. There is no cache where the last call got no memory.
  if (state.kv_self.buffer != nullptr)
    whisper_kv_cache_clear(state.kv_self);
  state.exp_n_audio_ctx = audio_context;
}

WhisperWindow window_of(const whisper_context& context, const whisper_state& state, int audio) {
  const int whole = context.model.hparams.n_audio_ctx;
  return whisper_window(audio, state.exp_n_audio_ctx > 0 ? state.exp_n_audio_ctx : whole, whole);
}

std::array<ggml_backend_sched_t, 3> audio_graphs(const whisper_state& state) {
  return {state.sched_conv.sched, state.sched_encode.sched, state.sched_cross.sched};
}

std::array<std::span<std::byte>, 4> scratch_memory(whisper_state& state) {
  const auto bytes = [](auto& memory) {
    return std::as_writable_bytes(std::span(memory.data(), memory.capacity()));
  };
  return {bytes(state.sched_conv.meta), bytes(state.sched_encode.meta), bytes(state.sched_cross.meta),
          bytes(state.sched_decode.meta)};
}

std::span<std::byte> text_cache(const whisper_state& state) {
  auto* buffer = state.kv_self.buffer;
  if (buffer == nullptr || !ggml_backend_buffer_is_host(buffer))
    return {};
  return {static_cast<std::byte*>(ggml_backend_buffer_get_base(buffer)),
          ggml_backend_buffer_get_size(buffer)};
}

uint32_t cache_head(const whisper_state& state) {
  return state.kv_self.head;
}

void set_graph_abort(whisper_state& state, ggml_abort_callback should_abort, void* user_data) {
  for (ggml_backend_t backend : state.backends)
    set_backend_abort(backend, should_abort, user_data);
}

bool has_no_times(const whisper_context& context) {
  const auto& hparams = context.model.hparams;
  constexpr int kVocabularyOfV3 = 51866;
  return hparams.n_text_layer == 2 && hparams.n_vocab != kVocabularyOfV3;
}

SpecialTokens special_tokens(const whisper_context& context) {
  const auto& vocab = context.vocab;
  SpecialTokens special;
  special.end_of_text = vocab.token_eot;
  special.first_time = vocab.token_beg;
  const auto space = vocab.token_to_id.find(" ");
  special.space = space == vocab.token_to_id.end() ? -1 : space->second;
  // What is between the end of the text and the times: languages, tasks, prompts, no speech.
  for (int32_t token = vocab.token_eot + 1; token < vocab.token_beg; ++token)
    special.never.push_back(token);
  return special;
}

DecoderPrompt decoder_prompt(const whisper_context& context, std::span<const int32_t> prompt,
                             const std::string& language, bool translate, bool times) {
  const auto& vocab = context.vocab;
  const auto most = static_cast<size_t>(context.model.hparams.n_text_ctx / 2 - 1);
  DecoderPrompt result;
  if (!prompt.empty()) {
    result.tokens.push_back(vocab.token_prev);
    const auto tail = prompt.last(std::min(most, prompt.size()));
    result.tokens.insert(result.tokens.end(), tail.begin(), tail.end());
  }
  result.transcript_start = result.tokens.size();
  result.tokens.push_back(vocab.token_sot);
  if (vocab.is_multilingual()) {
    result.tokens.push_back(vocab.token_sot + 1 + whisper_lang_id(language.c_str()));
    result.tokens.push_back(translate ? vocab.token_translate : vocab.token_transcribe);
  }
  if (!times)
    result.tokens.push_back(vocab.token_not);
  return result;
}

bool compute_spectrogram(whisper_context& context, whisper_state& state, std::span<const float> samples,
                         int threads) {
  return whisper_pcm_to_mel_with_state(&context, &state, samples.data(), static_cast<int>(samples.size()),
                                       threads) == 0;
}

bool encode_window(whisper_context& context, whisper_state& state, int frame, int threads) {
  return whisper_encode_internal(context, state, frame, threads, nullptr, nullptr);
}

namespace {

int cache_rows(const whisper_context& context, int tokens) {
  constexpr int kStep = 256; // as whisper.cpp rounds it
  // An alignment needs the whole context.
  return GGML_PAD(std::max(tokens, context.model.hparams.n_text_ctx), kStep);
}

} // namespace

void reserve_tokens(whisper_context& context, whisper_state& state, int tokens) {
  const auto& hparams = context.model.hparams;
  const int wanted = cache_rows(context, tokens);
  if (static_cast<int>(state.kv_self.size) >= wanted)
    return;
  whisper_kv_cache_free(state.kv_self);
  if (whisper_kv_cache_init(state.kv_self, state.backends[0], context.itype, hparams.n_text_state,
                            hparams.n_text_layer, wanted))
    return use_small_pages(state);
  state.kv_self.size = 0; // the next call tries again
  throw voxgate::Failure(voxgate::StatusCode::out_of_memory, "Not enough memory for the decoder");
}

namespace {

// Counted from the first token for which they were wanted.
std::span<float> logits_row(const whisper_context& context, whisper_state& state, size_t row) {
  const auto size = static_cast<size_t>(context.model.hparams.n_vocab);
  return std::span(state.logits).subspan(row * size, size);
}

void decode_batch(whisper_context& context, whisper_state& state, int threads, bool aligns) {
  forget_step(state);
  if (!whisper_decode_internal(context, state, state.batch, threads, aligns, nullptr, nullptr))
    throw voxgate::Failure(voxgate::StatusCode::inference_failed, "Whisper's decoder failed");
}

// Instead of whisper_decode_internal: the graph of a step is kept for the next one, where it can be. All
// texts have as many tokens behind the same prompt, so each row of the cache that a text has is before its
// new token.
void decode_step(whisper_context& context, whisper_state& state, int threads) {
  if (!keeps_steps(state))
    return decode_batch(context, state, threads, false);
  auto& cache = state.kv_self;
  auto& batch = state.batch;
  const auto fail = [&] {
    forget_step(state);
    throw voxgate::Failure(voxgate::StatusCode::inference_failed, "Whisper's decoder failed");
  };
  ++seam_counts.steps;
  if (!whisper_kv_cache_find_slot(cache, batch))
    fail();
  cache.n = std::min<uint32_t>(cache.size, GGML_PAD(whisper_kv_cache_cell_max(cache), cache_padding(state)));
  auto& step = state.step;
  auto* scheduler = state.sched_decode.sched;
  if (step.graph == nullptr || step.tokens != batch.n_tokens || step.rows != cache.n) {
    forget_step(state);
    ++seam_counts.step_graphs;
    step = {whisper_build_graph_decoder(context, state, batch, false, false), batch.n_tokens, cache.n};
    if (!ggml_backend_sched_alloc_graph(scheduler, step.graph))
      fail();
  }
  const auto set = [&](const char* name, const auto* values) {
    auto* tensor = ggml_graph_get_tensor(step.graph, name);
    ggml_backend_tensor_set(tensor, values, 0, ggml_nbytes(tensor));
  };
  set("embd", batch.token);
  set("position", batch.pos);
  auto& mask = state.inp_mask;
  mask.assign(static_cast<size_t>(cache.n) * static_cast<size_t>(batch.n_tokens), -INFINITY);
  for (int token = 0; token < batch.n_tokens; ++token) {
    float* row = mask.data() + static_cast<size_t>(token) * cache.n;
    for (uint32_t cell = 0; cell < cache.n; ++cell) {
      if (cache.cells[cell].has_seq_id(batch.seq_id[token][0]))
        row[cell] = 0;
    }
  }
  set("KQ_mask", mask.data());
  if (voxgate::compute_graph(scheduler, step.graph) != GGML_STATUS_SUCCESS)
    fail();
  read_logits(ggml_graph_node(step.graph, -1), state.logits);
}

} // namespace

PromptLogits decode_prompt(whisper_context& context, whisper_state& state, const DecoderPrompt& prompt,
                           int threads) {
  whisper_kv_cache_clear(state.kv_self);
  whisper_batch_prep_legacy(state.batch, prompt.tokens.data(), static_cast<int>(prompt.tokens.size()), 0, 0);
  state.batch.logits[prompt.transcript_start] = 1;
  decode_batch(context, state, threads, false);
  ++seam_counts.prompts;
  return {logits_row(context, state, prompt.tokens.size() - 1 - prompt.transcript_start),
          voxgate::softmax_at(logits_row(context, state, 0), static_cast<size_t>(context.vocab.token_nosp))};
}

namespace {

// A text goes on in the memory of its parent, which several may have. Its number is that of its extension.
void follow_parents(whisper_kv_cache& cache, std::span<const Extension> extensions) {
  if (extensions.size() == 1 && extensions.front().parent == 0)
    return; // The only text keeps its number. The others have ended and are not extended again.
  const auto used = static_cast<size_t>(whisper_kv_cache_cell_max(cache));
  for (auto& cell : std::span(cache.cells).first(used)) {
    std::set<whisper_seq_id> children;
    for (size_t i = 0; i < extensions.size(); ++i) {
      if (cell.has_seq_id(static_cast<whisper_seq_id>(extensions[i].parent)))
        children.insert(static_cast<whisper_seq_id>(i));
    }
    if (children.empty())
      cell.pos = -1;
    cell.seq_id = std::move(children);
  }
  cache.head = 0; // where a free row is looked for
}

} // namespace

std::vector<std::span<float>> decode_extensions(whisper_context& context, whisper_state& state,
                                                std::span<const Extension> extensions, int position,
                                                int threads) {
  auto& cache = state.kv_self;
  const auto count = static_cast<whisper_seq_id>(extensions.size());
  follow_parents(cache, extensions);
  auto& batch = state.batch;
  batch.n_tokens = count;
  std::vector<std::span<float>> rows;
  rows.reserve(extensions.size());
  for (whisper_seq_id i = 0; i < count; ++i) {
    batch.token[i] = extensions[static_cast<size_t>(i)].token;
    batch.pos[i] = position;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = i;
    batch.logits[i] = 1;
  }
  decode_step(context, state, threads);
  for (size_t i = 0; i < extensions.size(); ++i)
    rows.push_back(logits_row(context, state, i));
  return rows;
}

std::vector<float> score_text(whisper_context& context, whisper_state& state, const DecoderPrompt& prompt,
                              std::span<const int32_t> text, int threads) {
  // The logits of a token take 207 KB, so they are computed for some tokens at a time.
  constexpr size_t kAtOnce = 32;
  std::vector<float> logprobs;
  const auto score = [&](std::span<float> logits, int32_t token) {
    logprobs.push_back(logits[static_cast<size_t>(token)] - voxgate::log_sum_of_exponentials(logits));
  };
  auto next = text.begin();
  if (next != text.end())
    score(decode_prompt(context, state, prompt, threads).last, *next++);
  // Each token is decoded for what it says of the one after it.
  for (size_t first = 0; first + 1 < text.size(); first += kAtOnce) {
    const auto count = std::min(kAtOnce, text.size() - 1 - first);
    whisper_batch_prep_legacy(state.batch, &text[first], static_cast<int>(count),
                              static_cast<int>(prompt.tokens.size() + first), 0);
    state.batch.logits[0] = 1;
    decode_batch(context, state, threads, false);
    for (size_t row = 0; row < count; ++row)
      score(logits_row(context, state, row), *next++);
  }
  return logprobs;
}

std::vector<int> align_text(whisper_context& context, whisper_state& state, std::span<const int32_t> text,
                            const std::string& language, bool translate, int positions, int threads) {
  const auto& hparams = context.model.hparams;
  const int encoded = state.exp_n_audio_ctx > 0 ? state.exp_n_audio_ctx : hparams.n_audio_ctx;
  const auto used = static_cast<size_t>(std::clamp(positions, 0, encoded));
  auto tokens = decoder_prompt(context, {}, language, translate, false).tokens;
  const auto before = tokens.size() - 1;
  tokens.insert(tokens.end(), text.begin(), text.end());
  tokens.push_back(context.vocab.token_eot);
  if (text.empty() || used < kLeastAlignedPositions ||
      tokens.size() > static_cast<size_t>(hparams.n_text_ctx))
    return {};
  ++seam_counts.alignments;
  whisper_kv_cache_clear(state.kv_self);
  whisper_batch_prep_legacy(state.batch, tokens.data(), static_cast<int>(tokens.size()), 0, 0);
  decode_batch(context, state, threads, true);
  const auto* scores = state.aheads_cross_QKs;
  std::vector<float> values(static_cast<size_t>(ggml_nelements(scores)));
  ggml_backend_tensor_get(scores, values.data(), 0, values.size() * sizeof(float));
  const auto head_size = static_cast<float>(hparams.n_text_state) / static_cast<float>(hparams.n_text_head);
  return token_ends({.values = values,
                     .heads = static_cast<size_t>(scores->ne[2]),
                     .tokens = tokens.size(),
                     .positions = static_cast<size_t>(encoded),
                     .scale = std::pow(head_size, -0.25F)},
                    used, before);
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
  const auto of_audio = audio_graphs(state);
  std::set<ggml_backend_sched_t> schedulers(of_audio.begin(), of_audio.end());
  schedulers.insert(state.sched_decode.sched);
  for (ggml_backend_sched_t scheduler : schedulers) {
    for (ggml_backend_t backend : state.backends)
      bytes += ggml_backend_sched_get_buffer_size(scheduler, backend);
  }
  return bytes;
}

uint64_t text_cache_growth(const whisper_context& context, const whisper_state& state) {
  const int half = context.model.hparams.n_text_ctx / 2; // of a prompt, and of each text
  const auto most = static_cast<uint64_t>(cache_rows(context, half + kMaxBeams * half));
  const uint64_t row_bytes = ggml_backend_buffer_get_size(state.kv_self.buffer) / state.kv_self.size;
  return (most - std::min<uint64_t>(most, state.kv_self.size)) * row_bytes;
}

} // namespace voxgate::whisper_internals
