#include "speakers/speakers.h"

#include "speakers/embedding.h"
#include "speakers/segmentation.h"

#include <algorithm>

namespace voxgate {

struct Speakers::Networks {
  explicit Networks(SpeakerWeights&& weights) : segmentation(weights), embedding(weights) {
    weights.require_all_taken();
  }

  Segmentation segmentation;
  const Embedding embedding;
};

Speakers::Speakers(const std::string& path) : networks_(std::make_unique<Networks>(SpeakerWeights(path))) {}

Speakers::~Speakers() = default;

size_t Speakers::windows(size_t samples, size_t step) {
  if (samples <= Segmentation::kWindow)
    return 1;
  return 1 + (samples - Segmentation::kWindow + step - 1) / step;
}

std::vector<float> Speakers::segmentation(std::span<const float> samples, size_t step,
                                          const CancelToken& cancel) {
  cancel.check();
  constexpr size_t kWindowValues = Segmentation::kFrames * Segmentation::kClasses;
  const size_t count = windows(samples.size(), step);
  std::vector<float> result(count * kWindowValues);
  for (size_t first = 0; first < count; first += Segmentation::kTogether)
    networks_->segmentation.log_probabilities(samples.subspan(std::min(first * step, samples.size())), step,
                                              std::min(Segmentation::kTogether, count - first),
                                              &result[first * kWindowValues], cancel);
  return result;
}

std::vector<float> Speakers::embeddings(std::span<const float> samples,
                                        std::span<const std::span<const float>> masks,
                                        const CancelToken& cancel) {
  return networks_->embedding.embeddings(samples, masks, cancel);
}

} // namespace voxgate
