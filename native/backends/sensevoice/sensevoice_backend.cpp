#include "backends/sensevoice/sensevoice_backend.h"

#include "backends/registry.h"
#include "backends/sensevoice/sensevoice_ctc.h"
#include "backends/sensevoice/sensevoice_encoder.h"
#include "backends/sensevoice/sensevoice_fbank.h"
#include "keywords/speller.h"

#include <algorithm>

namespace voxgate {
namespace {

constexpr size_t kMinSamples = kSampleRate / 10; // shorter input is padded: the features need a whole frame

// Rows of the query table that follow those of the languages. FunASR uses the same numbers for event and
// emotion.
constexpr int32_t kEventQuery = 1;
constexpr int32_t kEmotionQuery = 2;

int max_frames(const SenseVoiceShape& shape) {
  const auto frames = 1 + (kMaxChunkSamples - Fbank::kFrame) / Fbank::kHop;
  return (static_cast<int>(frames) + shape.stride - 1) / shape.stride;
}

class SenseVoiceBackend final : public Backend {
 public:
  SenseVoiceBackend(GgufFile& file, const SenseVoiceShape& shape, SenseVoiceVocabulary vocabulary,
                    const LoadOptions& options, const CancelToken& cancel)
      : shape_(shape), vocabulary_(std::move(vocabulary)),
        speller_(vocabulary_.pieces, [this](size_t id) { return vocabulary_.spoken[id]; }),
        fbank_(shape.mels, kSenseVoiceFbank),
        encoder_(file, shape, options.device, std::max(1, options.threads), max_frames(shape), cancel) {
    info_.family = "sensevoice";
    for (const auto& language : shape_.languages)
      info_.languages.push_back(language.code);
    info_.multilingual = true;
    info_.finds_language = true;
    info_.memory_bytes = encoder_.memory_bytes();
  }

  const ModelInfo& info() const override { return info_; }

  std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                  const CancelToken& cancel) override {
    if (options.translate)
      throw Failure(StatusCode::invalid_argument, "SenseVoice cannot translate");
    if (!options.text.empty())
      throw Failure(StatusCode::invalid_argument, "SenseVoice cannot align a text");
    encode(samples, options.language, options.normalize_text, cancel);
    const auto limit_ms = static_cast<int64_t>(samples.size() * 1000 / kSampleRate);
    std::vector<float> first;
    encoder_.read_logits(0, first);
    auto peaks = encoder_.peaks(vocabulary_.blank);
    if (const auto& keywords = speller_.spell(options.keywords); !keywords.empty())
      put_keywords(peaks, keywords, vocabulary_, encoder_.scores());
    auto segment = read_sensevoice(peaks, first, shape_, vocabulary_, limit_ms);
    cancel.check();
    std::vector<Segment> segments;
    if (!segment.tokens.empty())
      segments.push_back(std::move(segment));
    return segments;
  }

  std::vector<Languages> detect_language(std::span<const float> samples, const DetectionOptions&,
                                         const CancelToken& cancel) override {
    encode(samples, "", true, cancel);
    std::vector<float> row;
    encoder_.read_logits(0, row);
    return {rank_languages(row, shape_)};
  }

 private:
  void encode(std::span<const float> samples, const std::string& language, bool normalize_text,
              const CancelToken& cancel) {
    cancel.check();
    std::vector<float> padded(samples.begin(), samples.end());
    padded.resize(std::max(samples.size(), kMinSamples));
    const auto frames = stack_frames(fbank_(padded), shape_.mels, shape_.stack, shape_.stride);
    encoder_.encode(frames,
                    {query_of(language), kEventQuery, kEmotionQuery,
                     normalize_text ? shape_.itn_query : shape_.plain_query},
                    cancel);
  }

  int32_t query_of(const std::string& language) const {
    const auto found = std::ranges::find(shape_.languages, language, &SenseVoiceLanguage::code);
    return found != shape_.languages.end() ? found->query : shape_.auto_query;
  }

  SenseVoiceShape shape_;
  SenseVoiceVocabulary vocabulary_;
  Speller speller_;
  Fbank fbank_;
  SenseVoiceEncoder encoder_;
  ModelInfo info_;
};

const FamilyRegistration registration{"sensevoice", load_sensevoice};

} // namespace

std::unique_ptr<Backend> load_sensevoice(const LoadOptions& options, const CancelToken& cancel) {
  GgufFile file(options.path);
  auto shape = read_sensevoice_shape(file);
  auto vocabulary = read_sensevoice_vocabulary(file, shape);
  cancel.check();
  return std::make_unique<SenseVoiceBackend>(file, shape, std::move(vocabulary), options, cancel);
}

} // namespace voxgate
