#pragma once

#include "cancel.h"
#include "layers/network_weights.h"
#include "layers/panels.h"
#include "layers/team.h"
#include "speakers/lstm.h"
#include "speakers/window_encoder.h"

#include <array>
#include <span>
#include <vector>

namespace voxgate {

// pyannote's segmentation-3.0 (https://huggingface.co/pyannote/segmentation-3.0): who of at most three
// speakers speaks in each frame of a window of ten seconds. The classes stand for sets of them: {}, {1},
// {2}, {3}, {1, 2}, {1, 3}, {2, 3} (https://arxiv.org/abs/2310.13025).
//
// An object holds the working memory, so it computes one call at a time.
class Segmentation {
 public:
  static constexpr size_t kWindow = WindowEncoder::kWindow;
  static constexpr size_t kFrames = WindowEncoder::kFrames; // the first sees samples 0 to 990
  static constexpr size_t kClasses = 7;

  explicit Segmentation(NetworkWeights& weights);

  // Writes the natural logarithms of the probabilities of the classes, [window][frame][class]. The windows
  // begin `step` samples apart, and samples after the end are zeros. A window is computed in the same way
  // beside any others and on any number of threads.
  void log_probabilities(std::span<const float> samples, size_t step, size_t windows, float* out,
                         const Team& team, const CancelToken& cancel);

 private:
  // Windows that take the steps of the LSTM together.
  struct Group {
    size_t windows = 0;
    std::vector<float> frames, next; // [frame][window][values]
    std::array<std::vector<float>, 2> work;
  };

  void classify(Group& group, size_t first, float* out) const;

  WindowEncoder encoder_;
  std::vector<std::array<Lstm, 2>> lstms_; // forward, backward
  std::vector<Panels> linears_;
  std::vector<Group> groups_;
};

} // namespace voxgate
