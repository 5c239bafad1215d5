#include "backends/whisper/whisper_backend.h"

#include "backends/ggml_runtime.h"
#include "backends/registry.h"
#include "backends/whisper/whisper_internals.h"
#include "backends/whisper/whisper_prompt.h"
#include "backends/whisper/whisper_times.h"
#include "models/ggml_file.h"

#include <whisper.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace voxgate {
namespace {

constexpr size_t kMinSamples = kSampleRate / 2; // shorter is padded: whisper.cpp reads 200 without checking
constexpr size_t kSamplesPerPosition = 320;
constexpr size_t kMaxPromptBytes = 4096; // far above the 224 tokens that are used
// A window may end after 20 ms of audio and the next starts there; bad weights would encode a chunk 1500
// times.
constexpr int kMaxWindows = 16;
// Small models gain most from several lanes, and large ones need most memory for each.
constexpr int kMaxLanes = 4;
constexpr uint64_t kMaxLaneMemory = uint64_t{1} << 30; // of all lanes but the first

struct FreeState {
  void operator()(whisper_state* state) const { whisper_free_state(state); }
};
using ContextPtr = std::shared_ptr<whisper_context>;
using StatePtr = std::unique_ptr<whisper_state, FreeState>;

// What the C callbacks of one call share. It lives on the stack of that call.
struct Call {
  const whisper_context& context;
  const ChunkEvents& events;
  whisper_internals::AbortSwitch abort_switch;
  SegmentTimes times;
  int windows = 0;
  double progress = 0;
  std::vector<Segment> segments;
  bool encoded = false; // the first window's encoding is in the state already

  void collect(whisper_state& state) {
    for (auto& segment : times.collect(context, state, static_cast<int>(segments.size()))) {
      segments.push_back(std::move(segment));
      if (events.segment)
        events.segment(segments.back());
    }
  }
  void advance(double fraction) {
    if (!events.progress || fraction < progress)
      return;
    progress = std::min(fraction, 1.0);
    events.progress(progress);
  }
};

// While it lives, graphs of the state stop when the call is cancelled. The switch is on the caller's stack,
// so it must be taken back however the call ends.
class GraphAbort {
 public:
  GraphAbort(whisper_state& state, whisper_internals::AbortSwitch& abort_switch) : state_(&state) {
    whisper_internals::set_graph_abort(state, &abort_switch);
  }
  GraphAbort(const GraphAbort&) = delete;
  GraphAbort& operator=(const GraphAbort&) = delete;
  ~GraphAbort() {
    if (state_ != nullptr)
      whisper_internals::set_graph_abort(*state_, nullptr);
  }
  void state_is_gone() { state_ = nullptr; }

 private:
  whisper_state* state_;
};

// Takes back what the first window may have asked for, however the call ends.
struct EncodeAgain {
  EncodeAgain() = default;
  EncodeAgain(const EncodeAgain&) = delete;
  EncodeAgain& operator=(const EncodeAgain&) = delete;
  ~EncodeAgain() { whisper_internals::skip_encoding(nullptr); }
};

// The last bytes of a long prompt, from the start of a UTF-8 character: the decoder uses the last tokens.
std::string_view prompt_tail(std::string_view prompt) {
  if (prompt.size() > kMaxPromptBytes)
    prompt.remove_prefix(prompt.size() - kMaxPromptBytes);
  while (!prompt.empty() && (static_cast<unsigned char>(prompt.front()) & 0xC0) == 0x80)
    prompt.remove_prefix(1);
  return prompt;
}

std::vector<std::string> language_codes(const whisper_context& context) {
  std::vector<std::string> codes;
  for (int id = 0; id < whisper_internals::language_count(context); ++id)
    codes.emplace_back(whisper_lang_str(id));
  return codes;
}

whisper_context_params context_params(int gpu) {
  auto params = whisper_context_default_params();
  params.use_gpu = gpu >= 0;
  params.gpu_device = std::max(gpu, 0);
  return params;
}

class WhisperBackend final : public Backend {
 public:
  WhisperBackend(ContextPtr context, std::shared_ptr<ThreadBudget> budget, bool on_gpu)
      : context_(std::move(context)), budget_(std::move(budget)), on_gpu_(on_gpu) {
    longest_token_ = whisper_internals::longest_token(*context_);
    info_.family = "whisper";
    info_.languages = language_codes(*context_);
    info_.multilingual = info_.languages.size() > 1;
    info_.audio_context = whisper_n_audio_ctx(context_.get());
    info_.text_context = whisper_n_text_ctx(context_.get());
    state(false); // made now, so that a machine too small fails the load and not the first request
    const auto lane_bytes = whisper_internals::memory_bytes(*fast_);
    const auto affordable = static_cast<int>(std::min<uint64_t>(kMaxLaneMemory / lane_bytes, kMaxLanes));
    info_.lanes = on_gpu ? 1 : std::min({1 + affordable, kMaxLanes, budget_->threads()});
    info_.memory_bytes = whisper_internals::memory_bytes(*context_) + lane_bytes;
  }

  const ModelInfo& info() const override { return info_; }

  LaneFactory lane_factory() const override {
    if (info_.lanes == 1)
      return {};
    return [whole = std::weak_ptr(context_), budget = budget_]() -> std::unique_ptr<Backend> {
      const auto weights = whole.lock();
      if (!weights)
        throw Failure(StatusCode::closed, "The model was closed");
      auto lane = std::make_unique<WhisperBackend>(whisper_internals::view_of(weights, context_params(-1)),
                                                   budget, false);
      lane->info_.memory_bytes -= whisper_internals::memory_bytes(*weights); // counted once
      return lane;
    };
  }

  std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                  const ChunkEvents& events, const CancelToken& cancel) override {
    cancel.check();
    Encoded wanted{options.words, 0, pad(samples)};
    const auto& padded = wanted.samples;
    whisper_state& state = this->state(options.words);
    const auto limit_ms = static_cast<int64_t>(samples.size() * 1000 / kSampleRate);
    Call call{*context_, events, {&cancel}, {options.words, limit_ms}, 0, 0, {}};
    auto params = full_params(options, call);
    params.audio_ctx = audio_context(options.audio_context, padded.size());
    const auto prompt = prompt_tokens(options.prompt);
    params.prompt_tokens = prompt.data();
    params.prompt_n_tokens = static_cast<int>(prompt.size());

    wanted.audio_context = params.audio_ctx;
    call.encoded = std::exchange(encoded_, {}) == wanted;
    prepare(state, options.words, params.audio_ctx);
    const whisper_internals::ExactPositions exact(*context_);
    const whisper_internals::BudgetScope budget_scope(*budget_);
    GraphAbort graph_abort(state, call.abort_switch);
    const EncodeAgain encode_again;
    whisper_internals::skip_encoding(call.encoded ? &state : nullptr);
    const int code = whisper_full_with_state(context_.get(), &state, params, padded.data(),
                                             static_cast<int>(padded.size()));
    if (code == -7) { // out of memory for its cache: whisper.cpp has freed the state already
      graph_abort.state_is_gone();
      static_cast<void>((options.words ? aligned_ : fast_).release());
      throw Failure(StatusCode::out_of_memory, "Not enough memory for the decoder");
    }
    cancel.check();
    if (code != 0)
      throw Failure(StatusCode::inference_failed, "Whisper failed with code " + std::to_string(code));
    call.collect(state);
    call.advance(1);
    return std::move(call.segments);
  }

  std::vector<LanguageProbability> detect_language(std::span<const float> samples,
                                                   const DetectionOptions& options,
                                                   const CancelToken& cancel) override {
    cancel.check();
    if (!info_.multilingual)
      return {{info_.languages.front(), 1.0F}};
    auto padded = pad(samples);
    whisper_state& state = this->state(options.words);
    whisper_internals::AbortSwitch abort_switch{&cancel};
    const int audio_context = this->audio_context(options.audio_context, padded.size());
    encoded_ = {};
    prepare(state, options.words, audio_context);
    const whisper_internals::ExactPositions exact(*context_);
    const whisper_internals::BudgetScope budget_scope(*budget_);
    const GraphAbort graph_abort(state, abort_switch);
    std::vector<float> probabilities(static_cast<size_t>(whisper_lang_max_id()) + 1);
    int code = whisper_pcm_to_mel_with_state(context_.get(), &state, padded.data(),
                                             static_cast<int>(padded.size()), budget_->threads());
    if (code == 0)
      code = whisper_lang_auto_detect_with_state(context_.get(), &state, 0, budget_->threads(),
                                                 probabilities.data());
    cancel.check();
    if (code < 0)
      throw Failure(StatusCode::inference_failed,
                    "Language detection failed with code " + std::to_string(code));
    encoded_ = {options.words, audio_context, std::move(padded)};
    return ranked(probabilities);
  }

 private:
  // What the attention caches of a state hold after a detection: the encoding of exactly these samples. A
  // transcription of the same finds it there and does not encode its first window again, which is most of the
  // work on a short clip.
  struct Encoded {
    bool aligned = false;
    int audio_context = 0;
    std::vector<float> samples;

    bool operator==(const Encoded&) const = default;
  };

  // whisper.cpp always looks at a hundred languages; in a model of 99 the last one is another kind of token.
  std::vector<LanguageProbability> ranked(const std::vector<float>& probabilities) const {
    std::vector<LanguageProbability> result;
    float sum = 0;
    for (size_t id = 0; id < info_.languages.size(); ++id) {
      result.push_back({info_.languages[id], probabilities[id]});
      sum += probabilities[id];
    }
    for (auto& guess : result)
      guess.probability = sum > 0 ? guess.probability / sum : 0;
    std::stable_sort(result.begin(), result.end(),
                     [](const auto& a, const auto& b) { return a.probability > b.probability; });
    return result;
  }

  whisper_state& state(bool aligned) {
    whisper_internals::use_alignment(*context_, aligned);
    StatePtr& slot = aligned ? aligned_ : fast_;
    if (!slot)
      slot.reset(whisper_init_state(context_.get()));
    if (!slot)
      throw Failure(StatusCode::out_of_memory, "Not enough memory for the model's working buffers");
    return *slot;
  }

  // Nothing of an earlier call may show in the next: not its random numbers, not its audio.
  void prepare(whisper_state& state, bool aligned, int audio_context) {
    whisper_internals::reset_sampling(state);
    int& last = last_context_[aligned ? 1 : 0];
    if (on_gpu_ && last != audio_context)
      whisper_internals::forget_audio(state);
    last = audio_context;
    whisper_internals::set_audio_context(state, audio_context);
  }

  static std::vector<float> pad(std::span<const float> samples) {
    std::vector<float> padded(samples.begin(), samples.end());
    padded.resize(std::max(samples.size(), kMinSamples));
    return padded;
  }

  std::vector<int32_t> prompt_tokens(const std::string& prompt) const {
    return tokenize_prompt(prompt_tail(prompt), longest_token_, [this](std::string_view piece) {
      return whisper_internals::find_token(*context_, piece);
    });
  }

  // Never less than the samples need: what lies behind the context would be lost without a word.
  int audio_context(int wanted, size_t samples) const {
    const auto needed = static_cast<int>((samples + kSamplesPerPosition - 1) / kSamplesPerPosition) + 1;
    const int context = wanted == 0 ? info_.audio_context : std::max(wanted, needed);
    return std::min(context, info_.audio_context);
  }

  whisper_full_params full_params(const ChunkOptions& options, Call& call) const {
    auto params = whisper_full_default_params(WHISPER_SAMPLING_GREEDY);
    params.n_threads = budget_->threads();
    params.language = options.language.c_str();
    params.translate = options.translate;
    params.no_context = true;
    params.token_timestamps = !options.words;
    params.max_tokens = options.max_tokens;
    params.temperature = options.temperature;
    params.temperature_inc = 0;
    params.greedy.best_of = options.temperature > 0 ? 5 : 1;
    params.entropy_thold = 0;
    params.logprob_thold = -INFINITY;
    params.no_speech_thold = 2;
    params.print_progress = false;
    params.print_timestamps = false;
    params.abort_callback = whisper_internals::should_abort;
    params.abort_callback_user_data = &call.abort_switch;
    params.encoder_begin_callback = [](whisper_context*, whisper_state* state, void* user) {
      auto& self = *static_cast<Call*>(user);
      self.times.begin_window(*state);
      whisper_internals::skip_encoding(self.encoded && self.windows == 0 ? state : nullptr);
      return ++self.windows <= kMaxWindows && !whisper_internals::should_abort(&self.abort_switch);
    };
    params.encoder_begin_callback_user_data = &call;
    // In the aligned state the callback comes before the times are there; those are collected at the end.
    if (!options.words) {
      params.new_segment_callback = [](whisper_context*, whisper_state* state, int, void* user) {
        static_cast<Call*>(user)->collect(*state);
      };
      params.new_segment_callback_user_data = &call;
    }
    params.progress_callback = [](whisper_context*, whisper_state*, int percent, void* user) {
      static_cast<Call*>(user)->advance(percent / 100.0);
    };
    params.progress_callback_user_data = &call;
    return params;
  }

  ContextPtr context_; // outlives the states, which use its weights
  std::shared_ptr<ThreadBudget> budget_;
  StatePtr fast_;
  StatePtr aligned_;
  std::array<int, 2> last_context_{}; // of the fast and the aligned state
  Encoded encoded_;
  bool on_gpu_;
  size_t longest_token_ = 0;
  ModelInfo info_;
};

const FamilyRegistration registration{"whisper", load_whisper, whisper_log_set};

} // namespace

std::unique_ptr<Backend> load_whisper(const LoadOptions& options, const CancelToken& cancel) {
  const int gpu = gpu_index(options.device);
  check_whisper_file(options.path);
  cancel.check();
  ContextPtr context(whisper_init_from_file_with_params_no_state(options.path.c_str(), context_params(gpu)),
                     whisper_free);
  if (!context)
    throw Failure(StatusCode::load_failed,
                  "Cannot use model file " + options.path + ": its weights do not fit");
  cancel.check();
  return std::make_unique<WhisperBackend>(std::move(context), std::make_shared<ThreadBudget>(options.threads),
                                          gpu >= 0);
}

} // namespace voxgate
