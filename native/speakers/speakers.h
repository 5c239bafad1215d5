#pragma once

#include "cancel.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace voxgate {

// The two networks that tell speakers apart: who of up to three speaks when in ten seconds, and whose voice
// it is. The rules of backend.h apply: one thread from load to destruction, and an abort by the exception of
// CancelToken::check. Nothing stays from one call to the next.
class Speakers {
 public:
  // Throws Failure{load_failed} unless it is the file that `voxgate models pull diarization` makes. A call
  // computes with `threads` threads, which change nothing of the result.
  explicit Speakers(const std::string& path, int threads = 1);
  ~Speakers();

  // The number of windows of ten seconds that begin `step` samples apart and cover all samples; at least one.
  static size_t windows(size_t samples, size_t step);

  // The natural logarithms of the probabilities of 7 classes: [window][589 frames][class]; see
  // speakers/segmentation.h. Samples after the end are zeros.
  std::vector<float> segmentation(std::span<const float> samples, size_t step, const CancelToken& cancel);

  // Embeddings of 192 values, one for each mask, or one of all samples without masks; see
  // speakers/embedding.h. There must be 400 samples at least.
  std::vector<float> embeddings(std::span<const float> samples, std::span<const std::span<const float>> masks,
                                const CancelToken& cancel);

 private:
  struct Networks;
  std::unique_ptr<Networks> networks_;
};

} // namespace voxgate
