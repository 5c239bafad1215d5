// Compiles whisper.cpp 1.9.1 and reaches what it keeps private. What is compiled is a copy in which some of
// its functions are renamed to `upstream_...`, so that its calls arrive at functions of ours, and some calls
// of ggml's functions are exchanged (native/patches/whisper). whisper_seams.h has the table of these places.
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
#include "backends/pages.h"
#include "backends/upstream_failure.h"
#include "backends/whisper/whisper_alignment.h"
#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_graph.h"
#include "backends/whisper/whisper_logits.h"
#include "backends/whisper/whisper_mel.h"
#include "backends/whisper/whisper_seams.h"
#include "status.h"

#include <whisper.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <vector>

struct whisper_filters;
struct whisper_mel;
static bool log_mel_spectrogram(whisper_state& state, const float* samples, int count, int rate, int frame,
                                int hop, int mels, int threads, const whisper_filters& filters, bool debug,
                                whisper_mel& mel);
static bool keeps_steps(const whisper_state& state);
static uint32_t cache_padding(const whisper_state& state);
struct whisper_sched;
static whisper_sched& shared_memory(const whisper_state& state, whisper_sched& scheduler);
static ggml_tensor* moved_out(whisper_state& state, ggml_tensor* output);

#include <patched/src/whisper.cpp> // NOLINT(bugprone-suspicious-include): its statics are reached

using voxgate::seam_counts;

static bool log_mel_spectrogram(whisper_state& state, const float* samples, int count, int rate, int frame,
                                int hop, int mels, int, const whisper_filters& filters, bool,
                                whisper_mel& mel) {
  if (state.call != nullptr && state.call->skips_encoding()) {
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

// With Vulkan attention rounds otherwise where it sees rows that no text has.
static bool keeps_steps(const whisper_state& state) {
  return state.backends.size() == 1 ||
         std::string_view(ggml_backend_name(state.backends.front())).starts_with("CUDA");
}

// With CUDA what whisper.cpp itself takes where that library is linked to it. On a CPU each row takes time,
// though nothing is read of those that no text has.
static uint32_t cache_padding(const whisper_state& state) {
  if (!keeps_steps(state))
    return 1;
  return state.backends.size() == 1 ? 32 : 256;
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

void set_call(whisper_state& state, CallScope* call) {
  state.call = call;
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
  throw Failure(StatusCode::out_of_memory, "Not enough memory for the decoder");
}

namespace {

// Counted from the first token for which they were wanted.
std::span<float> logits_row(const whisper_context& context, whisper_state& state, size_t row) {
  const auto size = static_cast<size_t>(context.model.hparams.n_vocab);
  return std::span(state.logits).subspan(row * size, size);
}

void keep_scores(const whisper_state& state, KeptScores& kept) {
  const auto* scores = state.aheads_cross_QKs;
  const auto positions = static_cast<size_t>(scores->ne[0]);
  const auto tokens = static_cast<size_t>(scores->ne[1]);
  std::vector<float> values(static_cast<size_t>(ggml_nelements(scores)));
  ggml_backend_tensor_get(scores, values.data(), 0, ggml_nbytes(scores));
  for (size_t token = 0; token < tokens; ++token) {
    kept.tokens.push_back(state.batch.token[token]);
    for (auto row = token; row < values.size() / positions; row += tokens) {
      const auto of_head = std::span(values).subspan(row * positions, positions);
      kept.values.insert(kept.values.end(), of_head.begin(), of_head.end());
    }
  }
}

// `kept`: null where no scores are kept.
void decode_batch(whisper_context& context, whisper_state& state, int threads, KeptScores* kept) {
  forget_step(state);
  if (!whisper_decode_internal(context, state, state.batch, threads, kept != nullptr, nullptr, nullptr))
    throw Failure(StatusCode::inference_failed, "Whisper's decoder failed");
  if (kept != nullptr)
    keep_scores(state, *kept);
}

// Instead of whisper_decode_internal: the graph of a step is kept for the next one, where it can be. All
// texts have as many tokens behind the same prompt, so each row of the cache that a text has is before its
// new token.
void decode_step(whisper_context& context, whisper_state& state, int threads, KeptScores* kept) {
  if (!keeps_steps(state))
    return decode_batch(context, state, threads, kept);
  auto& cache = state.kv_self;
  auto& batch = state.batch;
  const auto fail = [&] {
    forget_step(state);
    throw Failure(StatusCode::inference_failed, "Whisper's decoder failed");
  };
  ++seam_counts.steps;
  if (!whisper_kv_cache_find_slot(cache, batch))
    fail();
  cache.n = std::min<uint32_t>(cache.size, GGML_PAD(whisper_kv_cache_cell_max(cache), cache_padding(state)));
  auto& step = state.step;
  auto* scheduler = state.sched_decode.sched;
  const bool aligns = kept != nullptr;
  if (step.graph == nullptr || step.tokens != batch.n_tokens || step.rows != cache.n ||
      step.aligns != aligns) {
    forget_step(state);
    ++seam_counts.step_graphs;
    step = {whisper_build_graph_decoder(context, state, batch, aligns, false), batch.n_tokens, cache.n,
            aligns};
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
  if (compute_graph(state.call, scheduler, step.graph) != GGML_STATUS_SUCCESS)
    fail();
  read_logits(ggml_graph_node(step.graph, -1), state.logits);
  if (aligns)
    keep_scores(state, *kept);
}

} // namespace

bool may_keep_scores(const whisper_context& context, const whisper_state& state) {
  constexpr size_t kMostHeads = 32; // of all models whose heads are known
  const auto& hparams = context.model.hparams;
  size_t heads = 0;
  for (int layer = 0; layer < hparams.n_text_layer; ++layer)
    heads +=
        get_alignment_heads_by_layer(context.params, layer, hparams.n_text_layer, hparams.n_text_head).size();
  return state.backends.size() == 1 && heads <= kMostHeads;
}

PromptLogits decode_prompt(whisper_context& context, whisper_state& state, const DecoderPrompt& prompt,
                           int threads, KeptScores* kept) {
  whisper_kv_cache_clear(state.kv_self);
  whisper_batch_prep_legacy(state.batch, prompt.tokens.data(), static_cast<int>(prompt.tokens.size()), 0, 0);
  state.batch.logits[prompt.transcript_start] = 1;
  decode_batch(context, state, threads, kept);
  ++seam_counts.prompts;
  return {logits_row(context, state, prompt.tokens.size() - 1 - prompt.transcript_start),
          softmax_at(logits_row(context, state, 0), static_cast<size_t>(context.vocab.token_nosp))};
}

std::vector<std::vector<float>> language_probabilities(whisper_context& context, whisper_state& state,
                                                       size_t texts, int threads) {
  const auto& vocab = context.vocab;
  const std::vector<int32_t> starts(texts, vocab.token_sot);
  whisper_kv_cache_clear(state.kv_self);
  whisper_batch_prep_legacy(state.batch, starts.data(), static_cast<int>(texts), 0, 0);
  for (size_t text = 0; text < texts; ++text) {
    state.batch.pos[text] = 0;
    state.batch.seq_id[text][0] = static_cast<whisper_seq_id>(text);
    state.batch.logits[text] = 1;
  }
  decode_batch(context, state, threads, nullptr);
  ++seam_counts.prompts;
  std::vector<std::vector<float>> result;
  for (size_t text = 0; text < texts; ++text) {
    const auto languages =
        logits_row(context, state, text)
            .subspan(static_cast<size_t>(vocab.token_sot) + 1, static_cast<size_t>(language_count(context)));
    auto& probabilities = result.emplace_back(languages.size());
    log_softmax(languages, probabilities);
    for (auto& probability : probabilities)
      probability = std::exp(probability);
  }
  return result;
}

namespace {

// A text goes on in the memory of its parent, which several may have. Its number is that of its extension, or
// one more beside a known text, which keeps number 0 and all that it has.
void follow_parents(whisper_kv_cache& cache, std::span<const Extension> extensions, int position,
                    bool beside_known) {
  if (!beside_known && extensions.size() == 1 && extensions.front().parent == 0)
    return; // The only text keeps its number. The others have ended and are not extended again.
  const size_t first = beside_known ? 1 : 0;
  const auto used = static_cast<size_t>(whisper_kv_cache_cell_max(cache));
  for (auto& cell : std::span(cache.cells).first(used)) {
    std::set<whisper_seq_id> children;
    if (beside_known && cell.has_seq_id(0))
      children.insert(0);
    for (size_t i = 0; i < extensions.size(); ++i) {
      if (cell.pos < position && cell.has_seq_id(static_cast<whisper_seq_id>(extensions[i].parent)))
        children.insert(static_cast<whisper_seq_id>(first + i));
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
                                                int threads, bool beside_known, KeptScores* kept) {
  auto& cache = state.kv_self;
  const auto count = static_cast<whisper_seq_id>(extensions.size());
  follow_parents(cache, extensions, position, beside_known);
  auto& batch = state.batch;
  batch.n_tokens = count;
  std::vector<std::span<float>> rows;
  rows.reserve(extensions.size());
  for (whisper_seq_id i = 0; i < count; ++i) {
    batch.token[i] = extensions[static_cast<size_t>(i)].token;
    batch.pos[i] = position;
    batch.n_seq_id[i] = 1;
    batch.seq_id[i][0] = beside_known ? i + 1 : i;
    batch.logits[i] = 1;
  }
  decode_step(context, state, threads, kept);
  for (size_t i = 0; i < extensions.size(); ++i)
    rows.push_back(logits_row(context, state, i));
  return rows;
}

std::vector<float> score_text(whisper_context& context, whisper_state& state, const DecoderPrompt& prompt,
                              std::span<const int32_t> text, int threads, KeptScores* kept) {
  // The logits of a token take 207 KB, so they are computed for some tokens at a time.
  constexpr size_t kAtOnce = 32;
  std::vector<float> logprobs;
  const auto score = [&](std::span<float> logits, int32_t token) {
    logprobs.push_back(logits[static_cast<size_t>(token)] - log_sum_of_exponentials(logits));
  };
  auto next = text.begin();
  if (next != text.end())
    score(decode_prompt(context, state, prompt, threads, kept).last, *next++);
  // Each token is decoded for what it says of the one after it.
  for (size_t first = 0; first + 1 < text.size(); first += kAtOnce) {
    const auto count = std::min(kAtOnce, text.size() - 1 - first);
    whisper_batch_prep_legacy(state.batch, &text[first], static_cast<int>(count),
                              static_cast<int>(prompt.tokens.size() + first), 0);
    state.batch.logits[0] = 1;
    decode_batch(context, state, threads, kept);
    for (size_t row = 0; row < count; ++row)
      score(logits_row(context, state, row), *next++);
  }
  return logprobs;
}

std::vector<int> align_text(whisper_context& context, whisper_state& state, std::span<const int32_t> text,
                            const std::string& language, bool translate, int positions, int threads,
                            KeptScores kept) {
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
  const auto known = kept.tokens.size();
  if (known == 0 || known >= tokens.size() ||
      !std::ranges::equal(kept.tokens, std::span(tokens).first(known))) {
    kept = {};
    whisper_kv_cache_clear(state.kv_self);
  }
  seam_counts.tokens_aligned_as_decoded += static_cast<int>(kept.tokens.size());
  const auto rest = std::span(tokens).subspan(kept.tokens.size());
  whisper_batch_prep_legacy(state.batch, rest.data(), static_cast<int>(rest.size()),
                            static_cast<int>(kept.tokens.size()), 0);
  state.batch.logits[rest.size() - 1] = 0;
  decode_batch(context, state, threads, &kept);
  const auto row = static_cast<size_t>(encoded);
  const auto heads = kept.values.size() / (row * tokens.size());
  std::vector<float> values;
  values.reserve(kept.values.size());
  for (size_t head = 0; head < heads; ++head) {
    for (size_t token = 0; token < tokens.size(); ++token) {
      const auto scores = std::span(kept.values).subspan((token * heads + head) * row, row);
      values.insert(values.end(), scores.begin(), scores.end());
    }
  }
  const auto head_size = static_cast<float>(hparams.n_text_state) / static_cast<float>(hparams.n_text_head);
  return token_ends({.values = values,
                     .heads = heads,
                     .tokens = tokens.size(),
                     .positions = row,
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
  const int half =
      context.model.hparams.n_text_ctx / 2; // of a prompt, of a greedy text, and of each beside it
  const auto most = static_cast<uint64_t>(cache_rows(context, (2 + kMaxBeams) * half));
  const uint64_t row_bytes = ggml_backend_buffer_get_size(state.kv_self.buffer) / state.kv_self.size;
  return (most - std::min<uint64_t>(most, state.kv_self.size)) * row_bytes;
}

} // namespace voxgate::whisper_internals
