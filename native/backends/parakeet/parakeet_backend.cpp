#include "backends/parakeet/parakeet_backend.h"

#include "backends/ggml_runtime.h"
#include "backends/parakeet/parakeet_file.h"
#include "backends/parakeet/parakeet_internals.h"
#include "backends/registry.h"
#include "keywords/speller.h"
#include "models/checked_file.h"
#include "models/sentencepiece.h"

#include <parakeet.h>

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr size_t kMinSamples =
    kSampleRate / 2; // the mel bands are normalized over the clip: too few frames give NaN
constexpr int kMelFrames = static_cast<int>(kMaxChunkSamples / PARAKEET_HOP_LENGTH) + 1;
constexpr int64_t kUnitMs = 10;

struct FreeContext {
  void operator()(parakeet_context* context) const { parakeet_free(context); }
};
struct FreeState {
  void operator()(parakeet_state* state) const { parakeet_free_state(state); }
};
using ContextPtr = std::unique_ptr<parakeet_context, FreeContext>;
using StatePtr = std::unique_ptr<parakeet_state, FreeState>;

// While it lives, graphs of the state stop when the call is cancelled.
class GraphAbort {
 public:
  GraphAbort(parakeet_state& state, const CancelToken& cancel) : state_(state) {
    parakeet_internals::set_graph_abort(state, &cancel);
  }
  GraphAbort(const GraphAbort&) = delete;
  GraphAbort& operator=(const GraphAbort&) = delete;
  ~GraphAbort() { parakeet_internals::set_graph_abort(state_, nullptr); }

 private:
  parakeet_state& state_;
};

// The softmax is over the text tokens and the blank, as in training. parakeet.cpp's own function overflows
// above a logit of 88.
float logprob(std::span<const float> logits, int32_t id) {
  const float highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(static_cast<double>(logit - highest));
  return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)] - highest) - std::log(sum));
}

// True for a piece that spells nothing.
bool is_control(std::string_view piece) {
  return piece == "<unk>" || piece == "<pad>" || piece == "<s>" || piece == "</s>" ||
         !tag_name(piece).empty();
}

Speller spell_with(const parakeet_context& context, size_t vocabulary) {
  const auto pieces = parakeet_internals::pieces(context, vocabulary);
  return {pieces, [&](size_t id) { return !is_control(pieces[id]); }};
}

class ParakeetBackend final : public Backend {
 public:
  ParakeetBackend(ContextPtr context, const LoadOptions& options, size_t vocabulary)
      : context_(std::move(context)), speller_(spell_with(*context_, vocabulary)),
        threads_(std::max(1, options.threads)), vocabulary_(vocabulary) {
    parakeet_internals::set_audio_context(*context_, kMelFrames);
    state_.reset(parakeet_init_state(context_.get()));
    if (!state_)
      throw Failure(StatusCode::out_of_memory, "Not enough memory for the buffers of the model");
    info_.family = "parakeet";
    info_.languages = {"bg", "hr", "cs", "da", "nl", "en", "et", "fi", "fr", "de", "el", "hu", "it",
                       "lv", "lt", "mt", "pl", "pt", "ro", "ru", "sk", "sl", "es", "sv", "uk"};
    info_.multilingual = true;
    info_.memory_bytes =
        parakeet_internals::memory_bytes(*context_) + parakeet_internals::memory_bytes(*state_);
  }

  const ModelInfo& info() const override { return info_; }

  std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                  const CancelToken& cancel) override {
    cancel.check();
    if (options.translate)
      throw Failure(StatusCode::invalid_argument, "This model cannot translate");
    if (!options.text.empty())
      throw Failure(StatusCode::invalid_argument, "This model cannot align a text");
    std::vector<float> padded(samples.begin(), samples.end());
    padded.resize(std::max(samples.size(), kMinSamples));
    std::vector<float> logprobs; // one a token
    {
      const GraphAbort graph_abort(*state_, cancel);
      const bool done = parakeet_internals::run(
          *context_, *state_, padded, threads_, cancel, speller_.spell(options.keywords),
          [&](const parakeet_token_data& token, std::span<const float> logits) {
            logprobs.push_back(logprob(logits.first(vocabulary_ + 1), token.id));
          });
      cancel.check();
      if (!done)
        throw Failure(StatusCode::inference_failed, "Parakeet could not compute its graph");
    }
    return collect(logprobs, static_cast<int64_t>(samples.size() * 1000 / kSampleRate));
  }

  std::vector<Languages> detect_language(std::span<const float>, const DetectionOptions&,
                                         const CancelToken& cancel) override {
    cancel.check();
    throw Failure(StatusCode::invalid_argument, "This model does not tell the language it hears");
  }

 private:
  // One segment with every token, or none: a transducer has no notion of a segment.
  std::vector<Segment> collect(const std::vector<float>& logprobs, int64_t limit_ms) const {
    Segment segment;
    int64_t floor_ms = 0;
    for (const auto& data : parakeet_internals::tokens(*state_)) {
      Token token;
      token.id = data.id;
      const auto& piece = parakeet_internals::piece(*context_, data.id);
      token.bytes = is_control(piece) ? "" : piece_text(piece);
      token.logprob = logprobs.at(segment.tokens.size());
      if (!std::isfinite(token.logprob))
        throw Failure(StatusCode::inference_failed, "The model computed numbers that are not finite");
      token.start_ms = floor_ms = std::clamp(data.t0 * kUnitMs, floor_ms, limit_ms);
      token.end_ms = std::clamp(data.t1 * kUnitMs, token.start_ms, limit_ms);
      segment.tokens.push_back(std::move(token));
    }
    if (segment.tokens.empty())
      return {};
    segment.start_ms = segment.tokens.front().start_ms;
    segment.end_ms = segment.tokens.back().end_ms;
    return {std::move(segment)};
  }

  ContextPtr context_; // outlives the state, which uses its weights
  StatePtr state_;
  Speller speller_;
  int threads_;
  size_t vocabulary_;
  ModelInfo info_;
};

const FamilyRegistration registration{"parakeet", load_parakeet, parakeet_log_set};

} // namespace

std::unique_ptr<Backend> load_parakeet(const LoadOptions& options, const CancelToken& cancel) {
  const int gpu = gpu_index(options.device);
  CheckedFile file(options.path);
  const int32_t vocabulary = check_parakeet_file(file.reader());
  cancel.check();
  auto params = parakeet_context_default_params();
  params.use_gpu = gpu >= 0;
  params.gpu_device = std::max(gpu, 0);
  auto loader = file.loader<parakeet_model_loader>();
  ContextPtr context(parakeet_init_with_params_no_state(&loader, params));
  file.reader().require_unchanged();
  if (!context) // the file was checked, so that nothing else can be missing
    throw Failure(StatusCode::out_of_memory, "Not enough memory for the weights");
  cancel.check();
  return std::make_unique<ParakeetBackend>(std::move(context), options, static_cast<size_t>(vocabulary));
}

} // namespace voxgate
