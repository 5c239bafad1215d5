#include "backends/whisper/whisper_internals.h"

#include "backends/large_pages.h"
#include "backends/whisper/whisper_logits.h"
#include "backends/whisper/whisper_mel.h"

#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>
#include <whisper.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

// whisper.cpp calls its alignment pass (dynamic time warping) in the middle of whisper_full and asserts where
// the pass cannot work. Renaming the function and declaring an overload that fits the call's argument types
// better puts `align_window` below in front of it. A test checks that it is the one called.
static void align_window(whisper_context* context, whisper_state* state, const whisper_full_params& params,
                         size_t first_segment, int segments, int seek, int frames, int filter_width,
                         int threads);
#define whisper_exp_compute_token_level_timestamps_dtw align_window

// Three more whose own versions cost a tenth of the time of a short clip: the spectrogram by a naive
// transform, and the probabilities of the vocabulary with a call of expf each. The calls hand over values
// that are not const, so that these fit better than what whisper.cpp declares.
struct whisper_filters;
struct whisper_mel;
static bool log_mel_spectrogram(whisper_state& state, const float* samples, int count, int rate, int frame,
                                int hop, int mels, int threads, whisper_filters& filters, bool debug,
                                whisper_mel& mel);
static void whisper_compute_logprobs(std::vector<float>& logits, int count, std::vector<float>& logprobs);
static void whisper_compute_probs(std::vector<float>& logits, int count, std::vector<float>& logprobs,
                                  std::vector<float>& probs);

// With flash attention whisper.cpp rounds the audio context up to a multiple of 256 and attends to the
// positions in between without a mask. They hold zeros at first, which takes weight from the speech, and
// later what an earlier call with a longer context left there: another caller's audio. The CPU kernels need
// no rounding, so there is none while a state runs on the CPU. Rounding stays while a state is made (its
// buffers are then large enough for both) and for GPUs, where `forget_audio` clears the positions instead.
namespace {
thread_local bool t_exact_positions = false;
constexpr int kPositionPadding = 256;
template <typename X, typename N> auto pad_positions(X x, N n) {
  const bool exact = t_exact_positions && static_cast<int>(n) == kPositionPadding;
  return exact ? static_cast<decltype(GGML_PAD(x, n))>(x) : GGML_PAD(x, n);
}
} // namespace
#undef GGML_PAD
#define GGML_PAD(x, n) pad_positions(x, n)

// Where whisper.cpp computes a graph. It encodes the audio to tell its language and once more to transcribe
// it, see `skip_encoding`; and the threads it was given at the start of the call may have other work by now.
namespace {
thread_local std::array<ggml_backend_sched_t, 3> t_skipped{};
thread_local int t_skips = 0;
thread_local const voxgate::ThreadBudget* t_budget = nullptr;
void set_threads(ggml_backend_sched_t sched, int threads);
ggml_status compute_graph(ggml_backend_sched_t sched, ggml_cgraph* graph) {
  if (std::find(t_skipped.begin(), t_skipped.end(), sched) != t_skipped.end()) {
    ++t_skips;
    return GGML_STATUS_SUCCESS;
  }
  if (t_budget != nullptr)
    set_threads(sched, t_budget->share());
  return ggml_backend_sched_graph_compute(sched, graph);
}
} // namespace
#define ggml_backend_sched_graph_compute compute_graph

// The weights and the encoded audio are read from end to end for every token.
namespace {
ggml_backend_buffer_t in_large_pages(ggml_backend_buffer_t buffer) {
  if (buffer != nullptr && ggml_backend_buffer_is_host(buffer))
    voxgate::ask_for_large_pages(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  return buffer;
}
ggml_backend_buffer_t alloc_weights(ggml_context* context, ggml_backend_buffer_type_t type) {
  return in_large_pages(ggml_backend_alloc_ctx_tensors_from_buft(context, type));
}
ggml_backend_buffer_t alloc_cache(ggml_context* context, ggml_backend_t backend) {
  return in_large_pages(ggml_backend_alloc_ctx_tensors(context, backend));
}
} // namespace
#define ggml_backend_alloc_ctx_tensors_from_buft alloc_weights
#define ggml_backend_alloc_ctx_tensors alloc_cache

#include <src/whisper.cpp>

#undef ggml_backend_alloc_ctx_tensors
#undef ggml_backend_alloc_ctx_tensors_from_buft
#undef ggml_backend_sched_graph_compute

#undef GGML_PAD
#undef whisper_exp_compute_token_level_timestamps_dtw

namespace voxgate::whisper_internals {
namespace {

constexpr int kMedianWidth = 7; // as in whisper_full

thread_local int t_alignments = 0;

// A function that only some of ggml's backends have, or null.
template <typename Function> Function backend_proc(ggml_backend_t backend, const char* name) {
  ggml_backend_dev_t device = ggml_backend_get_device(backend);
  ggml_backend_reg_t reg = device != nullptr ? ggml_backend_dev_backend_reg(device) : nullptr;
  return reg != nullptr ? reinterpret_cast<Function>(ggml_backend_reg_get_proc_address(reg, name)) : nullptr;
}

// Pushes a spare segment behind the results while the alignment writes its times. The pass steps its iterator
// past the last token it fills and reads where the next one would be, outside the results.
class SpareSegment {
 public:
  explicit SpareSegment(whisper_state& state) : state_(state) {
    whisper_segment spare{};
    spare.tokens.resize(4);
    state_.result_all.push_back(std::move(spare));
  }
  ~SpareSegment() { state_.result_all.pop_back(); }

 private:
  whisper_state& state_;
};

class Disarm {
 public:
  explicit Disarm(AbortSwitch& abort_switch) : switch_(abort_switch) { switch_.armed = false; }
  ~Disarm() { switch_.armed = true; }

 private:
  AbortSwitch& switch_;
};

bool heads_fit(const whisper_aheads& heads, const whisper_hparams& hparams) {
  for (size_t i = 0; i < heads.n_heads; ++i) {
    if (heads.heads[i].n_text_layer >= hparams.n_text_layer || heads.heads[i].n_head >= hparams.n_text_head)
      return false;
  }
  return true;
}

whisper_alignment_heads_preset published_heads(const whisper_hparams& hparams) {
  const bool english = hparams.n_vocab == 51864;
  if (hparams.n_audio_layer == 32 && hparams.n_text_layer == 4 && hparams.n_vocab == 51866)
    return WHISPER_AHEADS_LARGE_V3_TURBO;
  if (hparams.n_audio_layer != hparams.n_text_layer)
    return WHISPER_AHEADS_N_TOP_MOST; // distilled: fewer text layers than the model the heads were found in
  switch (hparams.n_audio_layer) {
  case 4:
    return english ? WHISPER_AHEADS_TINY_EN : WHISPER_AHEADS_TINY;
  case 6:
    return english ? WHISPER_AHEADS_BASE_EN : WHISPER_AHEADS_BASE;
  case 12:
    return english ? WHISPER_AHEADS_SMALL_EN : WHISPER_AHEADS_SMALL;
  case 24:
    return english ? WHISPER_AHEADS_MEDIUM_EN : WHISPER_AHEADS_MEDIUM;
  case 32: // v1 and v2 have the same shape; v2 is the one in use
    return hparams.n_vocab == 51866 ? WHISPER_AHEADS_LARGE_V3 : WHISPER_AHEADS_LARGE_V2;
  default:
    return WHISPER_AHEADS_N_TOP_MOST;
  }
}

} // namespace

int alignments_done() {
  return t_alignments;
}

bool should_abort(void* abort_switch) {
  const auto* self = static_cast<const AbortSwitch*>(abort_switch);
  return self->armed && self->cancel != nullptr && self->cancel->cancelled();
}

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
  // Lets go of the weights itself: a weak pointer to the view would keep what this holds.
  const auto free_view = [whole = std::move(whole)](whisper_context* context) mutable {
    delete context;
    whole.reset();
  };
  return {view.release(), free_view};
}

BudgetScope::BudgetScope(ThreadBudget& budget) : budget_(budget) {
  budget_.join();
  t_budget = &budget_;
}

BudgetScope::~BudgetScope() {
  t_budget = nullptr;
  budget_.leave();
}

void use_alignment(whisper_context& context, bool aligned) {
  auto& params = context.params;
  const auto& hparams = context.model.hparams;
  params.flash_attn = !aligned;
  params.dtw_token_timestamps = aligned;
  if (!aligned)
    return;
  params.dtw_aheads_preset = published_heads(hparams);
  size_t heads = 0;
  const auto known = g_aheads.find(params.dtw_aheads_preset);
  if (known != g_aheads.end() && heads_fit(known->second, hparams)) {
    heads = known->second.n_heads;
  } else {
    params.dtw_aheads_preset = WHISPER_AHEADS_N_TOP_MOST;
    params.dtw_n_top = std::max(1, hparams.n_text_layer / 2);
    heads = static_cast<size_t>(params.dtw_n_top) * static_cast<size_t>(hparams.n_text_head);
  }
  // The pass keeps the weights of all heads three times and asserts when its memory is too small.
  const size_t tokens = static_cast<size_t>(hparams.n_text_ctx) / 2 + 8;
  const size_t positions = static_cast<size_t>(hparams.n_audio_ctx);
  params.dtw_mem_size = 3 * sizeof(float) * heads * tokens * positions +
                        8 * sizeof(float) * tokens * positions + size_t{4} * 1024 * 1024;
}

void reset_sampling(whisper_state& state) {
  state.decoders[0].rng = std::mt19937(0);
}

ExactPositions::ExactPositions(const whisper_context& context) {
  t_exact_positions = !context.params.use_gpu;
}

ExactPositions::~ExactPositions() {
  t_exact_positions = false;
}

void forget_audio(whisper_state& state) {
  ggml_backend_buffer_clear(state.kv_cross.buffer, 0);
  ggml_backend_buffer_clear(state.kv_pad.buffer, 0);
}

void set_audio_context(whisper_state& state, int audio_context) {
  state.exp_n_audio_ctx = audio_context;
}

void skip_encoding(const whisper_state* state) {
  t_skipped = {};
  if (state != nullptr)
    t_skipped = {state->sched_conv.sched, state->sched_encode.sched, state->sched_cross.sched};
}

int encodings_skipped() {
  return t_skips;
}

void set_graph_abort(whisper_state& state, AbortSwitch* abort_switch) {
  for (ggml_backend_t backend : state.backends) {
    if (auto set =
            backend_proc<ggml_backend_set_abort_callback_t>(backend, "ggml_backend_set_abort_callback"))
      set(backend, abort_switch != nullptr ? should_abort : nullptr, abort_switch);
  }
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

namespace {
void set_threads(ggml_backend_sched_t sched, int threads) {
  for (int i = 0; i < ggml_backend_sched_get_n_backends(sched); ++i) {
    ggml_backend_t backend = ggml_backend_sched_get_backend(sched, i);
    if (auto set = voxgate::whisper_internals::backend_proc<ggml_backend_set_n_threads_t>(
            backend, "ggml_backend_set_n_threads"))
      set(backend, threads);
  }
}
} // namespace

static void align_window(whisper_context* context, whisper_state* state, const whisper_full_params& params,
                         size_t first_segment, int segments, int seek, int frames, int filter_width,
                         int threads) {
  using namespace voxgate::whisper_internals;
  auto& abort_switch = *static_cast<AbortSwitch*>(params.abort_callback_user_data);
  // The median filter asserts that it is narrower than the window (in positions of two frames), the pass that
  // the window is no longer than what was encoded. Without alignment the tokens keep t_dtw == -1.
  const int positions =
      state->exp_n_audio_ctx > 0 ? state->exp_n_audio_ctx : context->model.hparams.n_audio_ctx;
  frames = std::min(frames, 2 * positions);
  if (should_abort(&abort_switch) || frames / 2 <= kMedianWidth)
    return;
  const Disarm disarm(abort_switch);
  const SpareSegment spare(*state);
  ++t_alignments;
  align_window(context, state, params, static_cast<int>(first_segment), static_cast<size_t>(segments), seek,
               frames, filter_width, threads);
}

static bool log_mel_spectrogram(whisper_state& state, const float* samples, int count, int rate, int frame,
                                int hop, int mels, int, whisper_filters& filters, bool, whisper_mel& mel) {
  if (t_skipped.front() == state.sched_conv.sched)
    return true; // who is not encoded again needs no spectrogram
  // 30 s of silence behind the audio, as whisper.cpp has it: the window may reach past the end.
  mel.n_mel = mels;
  mel.n_len = (count + 30 * rate) / hop;
  mel.n_len_org = 1 + (count - frame / 2) / hop;
  mel.data.resize(static_cast<size_t>(mel.n_mel) * static_cast<size_t>(mel.n_len));
  voxgate::whisper_log_mel({samples, static_cast<size_t>(count)}, filters.data, static_cast<size_t>(mels),
                           mel.data);
  return true;
}

static void whisper_compute_logprobs(std::vector<float>& logits, int count, std::vector<float>& logprobs) {
  const auto size = static_cast<size_t>(count);
  voxgate::log_softmax(std::span(logits).first(size), std::span(logprobs).first(size));
}

static void whisper_compute_probs(std::vector<float>&, int count, std::vector<float>& logprobs,
                                  std::vector<float>& probs) {
  const auto size = static_cast<size_t>(count);
  voxgate::exponentials(std::span(logprobs).first(size), std::span(probs).first(size));
}
