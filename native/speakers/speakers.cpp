#include "speakers/speakers.h"

#include "speakers/embedding.h"
#include "speakers/segmentation.h"

#include <algorithm>

namespace voxgate {

struct Speakers::Networks {
  Networks(NetworkWeights&& weights, int threads) : segmentation(weights), embedding(weights), team(threads) {
    weights.require_all_taken();
  }

  Segmentation segmentation;
  const Embedding embedding;
  const Team team;
};

Speakers::Speakers(const std::string& path, int threads)
    : networks_(std::make_unique<Networks>(NetworkWeights(path, "voxgate-diarization"), threads)) {}

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
  networks_->segmentation.log_probabilities(samples, step, count, result.data(), networks_->team, cancel);
  return result;
}

std::vector<float> Speakers::embeddings(std::span<const float> samples,
                                        std::span<const std::span<const float>> masks,
                                        const CancelToken& cancel) {
  return networks_->embedding.embeddings(samples, masks, networks_->team, cancel);
}

} // namespace voxgate
