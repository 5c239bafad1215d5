#include "backends/whisper/whisper_backend.h"

#include "backends/ggml_runtime.h"
#include "backends/registry.h"
#include "backends/whisper/whisper_internals.h"
#include "backends/whisper/whisper_prompt.h"
#include "backends/whisper/whisper_transcript.h"
#include "models/checked_file.h"

#include <whisper.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace voxgate {
namespace {

constexpr size_t kMinSamples = kSampleRate / 2; // shorter is padded: whisper.cpp reads 200 without checking
constexpr size_t kSamplesPerPosition = 320;
constexpr int kMsPerPosition = 20;
// Small models gain most from several lanes, and large ones need most memory for each. docs/performance.md
// has what more of them would bring.
constexpr int kMaxLanes = 8;
constexpr int kMaxLaneThreads = 256; // of all lanes: each may be the only one that computes, with all threads
constexpr uint64_t kMaxLaneBytes = uint64_t{1} << 30; // of all lanes but the first
// Beside its buffers, a lane on a GPU has a stream, a workspace of cuBLAS and memory for single operations.
constexpr uint64_t kGpuLaneBytes = uint64_t{128} << 20;
constexpr uint64_t kMaxPartOfGpu = 2; // of the free memory, for all lanes but the first

struct FreeState {
  void operator()(whisper_state* state) const { whisper_free_state(state); }
};
using ContextPtr = std::shared_ptr<whisper_context>;
using StatePtr = std::unique_ptr<whisper_state, FreeState>;

std::vector<std::string> language_codes(const whisper_context& context) {
  const int count = whisper_internals::language_count(context);
  std::vector<std::string> codes;
  codes.reserve(static_cast<size_t>(count));
  for (int id = 0; id < count; ++id)
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
  WhisperBackend(ContextPtr context, std::shared_ptr<ThreadBudget> budget, int gpu)
      : context_(std::move(context)), budget_(std::move(budget)), gpu_(gpu) {
    whisper_internals::choose_alignment_heads(*context_);
    longest_token_ = whisper_internals::longest_token(*context_);
    info_.family = "whisper";
    info_.languages = language_codes(*context_);
    info_.multilingual = info_.languages.size() > 1;
    info_.audio_context = whisper_n_audio_ctx(context_.get());
    info_.text_context = whisper_n_text_ctx(context_.get());
    const auto lane_bytes = whisper_internals::memory_bytes(state());
    info_.lanes = gpu >= 0 ? lanes_on_gpu(lane_bytes) : lane_count(lane_bytes, budget_->threads());
    info_.memory_bytes = whisper_internals::memory_bytes(*context_) + lane_bytes;
  }

  const ModelInfo& info() const override { return info_; }

  LaneFactory lane_factory() const override {
    if (info_.lanes == 1)
      return {};
    return [whole = std::weak_ptr(context_), budget = budget_, gpu = gpu_]() -> std::unique_ptr<Backend> {
      const auto weights = whole.lock();
      if (!weights)
        throw Failure(StatusCode::closed, "The model was closed");
      auto lane = std::make_unique<WhisperBackend>(whisper_internals::view_of(weights, context_params(gpu)),
                                                   budget, gpu);
      lane->info_.memory_bytes -= whisper_internals::memory_bytes(*weights); // counted once
      return lane;
    };
  }

  std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                  const CancelToken& cancel) override {
    cancel.check();
    Encoded wanted{0, pad(samples)};
    const auto& padded = wanted.samples;
    wanted.audio_context = audio_context(options.audio_context, padded.size());
    const bool encoded = std::exchange(encoded_, {}) == wanted && options.again;
    whisper_state& state = this->state();
    whisper_internals::set_audio_context(state, wanted.audio_context);
    CallScope scope(state, *budget_, cancel);
    WhisperTranscript transcript(*context_, state, scope, cancel, options,
                                 prompt_tokens(prompt_tail(options.prompt)), prompt_tokens(options.text));
    const size_t padding = padded.size() - samples.size();
    // Another attempt at the same audio need not encode it again.
    const auto keep_encoded = [&] {
      if (transcript.windows() == 1)
        encoded_ = std::move(wanted);
    };
    try {
      auto segments = transcript.run(padded, padding, encoded);
      keep_encoded();
      return segments;
    } catch (const Failure& failure) {
      cancel.check(); // a decoder that was stopped has failed, too
      if (failure.status().code == StatusCode::repetition)
        keep_encoded();
      throw;
    }
  }

  std::vector<Languages> detect_language(std::span<const float> samples, const DetectionOptions& options,
                                         const CancelToken& cancel) override {
    cancel.check();
    if (!info_.multilingual)
      return std::vector(1 + options.parts.size(), Languages{{info_.languages.front(), 1.0F}});
    encoded_ = {};
    Encoded wanted{0, pad(samples)};
    wanted.audio_context = audio_context(options.audio_context, wanted.samples.size());
    whisper_state& state = this->state();
    whisper_internals::set_audio_context(state, wanted.audio_context);
    CallScope scope(state, *budget_, cancel);
    const auto audio = static_cast<int>(wanted.samples.size() / kSamplesPerPosition);
    const auto window = whisper_internals::window_of(*context_, state, audio);
    scope.set_window(window);
    if (!whisper_internals::compute_spectrogram(*context_, state, wanted.samples, scope.threads()) ||
        !whisper_internals::encode_window(*context_, state, 0, scope.threads())) {
      cancel.check();
      throw Failure(StatusCode::inference_failed, "Whisper's encoder failed");
    }
    if (!options.parts.empty())
      scope.set_parts(positions_of(options.parts, window, audio));
    std::vector<Languages> result;
    try {
      for (const auto& probabilities : whisper_internals::language_probabilities(
               *context_, state, 1 + options.parts.size(), scope.threads()))
        result.push_back(ranked(probabilities));
    } catch (const Failure&) {
      cancel.check(); // a decoder that was stopped has failed, too
      throw;
    }
    cancel.check();
    encoded_ = std::move(wanted);
    return result;
  }

 private:
  // What the attention caches of a state hold after a detection: the encoding of exactly these samples. A
  // transcription of the same finds it there and does not encode its first window again, which is most of the
  // work on a short clip.
  struct Encoded {
    int audio_context = 0;
    std::vector<float> samples;

    bool operator==(const Encoded&) const = default;
  };

  // The whole window, and behind it each part, of which none is empty.
  static std::vector<WindowPart> positions_of(std::span<const DetectionOptions::Part> parts,
                                              const WhisperWindow& window, int audio) {
    std::vector<WindowPart> result{{0, window.dense}};
    const int last = std::min(audio, window.dense);
    for (const auto& [start_ms, end_ms] : parts) {
      const int begin = std::min(start_ms / kMsPerPosition, last - 1);
      result.push_back({begin, std::clamp(end_ms / kMsPerPosition, begin + 1, last)});
    }
    return result;
  }

  Languages ranked(const std::vector<float>& probabilities) const {
    Languages result;
    result.reserve(info_.languages.size());
    for (size_t id = 0; id < info_.languages.size(); ++id)
      result.push_back({info_.languages[id], probabilities[id]});
    std::stable_sort(result.begin(), result.end(),
                     [](const auto& a, const auto& b) { return a.probability > b.probability; });
    return result;
  }

  // Other libraries than CUDA's were not seen to compute for several threads at once.
  int lanes_on_gpu(uint64_t lane_bytes) {
    const auto gpu = ggml_backend_sched_get_backend(whisper_internals::audio_graphs(state()).front(), 0);
    if (!std::string_view(ggml_backend_name(gpu)).starts_with("CUDA"))
      return 1;
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    ggml_backend_dev_memory(ggml_backend_get_device(gpu), &free_bytes, &total_bytes);
    const auto growth = whisper_internals::text_cache_growth(*context_, state());
    return gpu_lane_count(lane_bytes + growth, free_bytes, budget_->threads());
  }

  // It is made when the model is loaded, so that a machine too small fails the load and not the first
  // request, and again after a call that lost it.
  whisper_state& state() {
    if (!state_)
      state_.reset(whisper_init_state(context_.get()));
    if (!state_)
      throw Failure(StatusCode::out_of_memory, "Not enough memory for the model's working buffers");
    return *state_;
  }

  static std::vector<float> pad(std::span<const float> samples) {
    std::vector<float> padded(samples.begin(), samples.end());
    padded.resize(std::max(samples.size(), kMinSamples));
    return padded;
  }

  std::vector<int32_t> prompt_tokens(std::string_view prompt) const {
    return tokenize_prompt(prompt, longest_token_, [this](std::string_view piece) {
      return whisper_internals::find_token(*context_, piece);
    });
  }

  // Never less than the samples need: what lies behind the context would be lost without a word.
  int audio_context(int wanted, size_t samples) const {
    const auto needed = static_cast<int>((samples + kSamplesPerPosition - 1) / kSamplesPerPosition) + 1;
    const int context = wanted == 0 ? info_.audio_context : std::max(wanted, needed);
    return std::min(context, info_.audio_context);
  }

  ContextPtr context_; // outlives the state, which uses its weights
  std::shared_ptr<ThreadBudget> budget_;
  StatePtr state_;
  Encoded encoded_;
  int gpu_; // -1 for the CPU
  size_t longest_token_ = 0;
  ModelInfo info_;
};

const FamilyRegistration registration{"whisper", load_whisper, whisper_log_set};

} // namespace

int lane_count(uint64_t lane_bytes, int threads) {
  const auto affordable = static_cast<int>(std::min<uint64_t>(kMaxLaneBytes / lane_bytes, kMaxLanes));
  return std::max(1, std::min({1 + affordable, kMaxLanes, threads, kMaxLaneThreads / threads}));
}

int gpu_lane_count(uint64_t lane_bytes, uint64_t free_bytes, int threads) {
  const auto affordable =
      std::min<uint64_t>(free_bytes / kMaxPartOfGpu / (lane_bytes + kGpuLaneBytes), kMaxLanes);
  return std::clamp(1 + static_cast<int>(affordable), 1, std::min(kMaxLanes, std::max(1, threads)));
}

std::unique_ptr<Backend> load_whisper(const LoadOptions& options, const CancelToken& cancel) {
  const int gpu = gpu_index(options.device);
  CheckedFile file(options.path);
  check_whisper_file(file.reader());
  cancel.check();
  auto loader = file.loader<whisper_model_loader>();
  ContextPtr context(whisper_init_with_params_no_state(&loader, context_params(gpu)), whisper_free);
  file.reader().require_unchanged();
  if (!context) // the file was checked, so that nothing else can be missing
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the weights");
  cancel.check();
  return std::make_unique<WhisperBackend>(std::move(context), std::make_shared<ThreadBudget>(options.threads),
                                          gpu);
}

} // namespace voxgate
