#pragma once

#include "cancel.h"
#include "speakers/panels.h"
#include "speakers/speaker_weights.h"

#include <array>
#include <span>
#include <vector>

namespace voxgate {

// pyannote's segmentation-3.0 (https://huggingface.co/pyannote/segmentation-3.0): who of at most three
// speakers speaks in each frame of a window of ten seconds. The classes are the powerset of at most two of
// them: nobody, 1, 2, 3, 1 and 2, 1 and 3, 2 and 3 (https://arxiv.org/abs/2310.13025).
//
// An object holds the working memory, so it belongs to one thread.
class Segmentation {
 public:
  static constexpr size_t kWindow = 160000; // samples at 16 kHz
  static constexpr size_t kFrames =
      589; // of a window, one every 270 samples; the first sees samples 0 to 990
  static constexpr size_t kClasses = 7;
  static constexpr size_t kTogether = 4; // windows

  explicit Segmentation(SpeakerWeights& weights);

  // Writes the natural logarithms of the probabilities of the classes, [window][frame][class]. The windows
  // begin `step` samples apart, and samples after the end are zeros. There are at most kTogether windows.
  void log_probabilities(std::span<const float> samples, size_t step, size_t windows, float* out,
                         const CancelToken& cancel);

 private:
  struct Norm {
    std::vector<float> weight, bias;
    // Gives each channel of frames the mean 0 and the variance 1, then the trained ones, and ends with a
    // leaky ReLU.
    void apply(float* frames, size_t count) const;
  };
  struct Lstm {
    Lstm(SpeakerWeights& weights, const std::string& name, size_t inputs);
    Panels input; // of the gates: input, forget, cell, output
    Panels recurrent;
  };

  void encode(std::span<const float> samples, float* frames, const CancelToken& cancel);
  void recur(const Lstm& lstm, size_t inputs, size_t windows, bool backward, const CancelToken& cancel);

  std::vector<float> wave_weight_, wave_bias_;
  std::vector<Panels> convolutions_;
  std::vector<Norm> norms_;
  std::vector<std::array<Lstm, 2>> lstms_; // forward, backward
  std::vector<Panels> linears_;

  std::vector<float> wave_, convolved_, pooled_[3];
  std::vector<float> frames_, next_, gates_; // [window][frame][...]
};

} // namespace voxgate
