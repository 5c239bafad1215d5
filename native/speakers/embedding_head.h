#pragma once

#include "audio/fbank.h"
#include "cancel.h"
#include "layers/linear_layer.h"
#include "layers/network_weights.h"
#include "layers/team.h"

#include <span>
#include <string>
#include <vector>

namespace voxgate {

// The first part of CAM++: convolutions over pictures of frequencies and times, from samples to frames of 10
// ms. A picture of 30 s would take 31 MB and the head needs four, so that it computes strips of 2.5 s. They
// overlap by what the layers see on each side.
//
// The features are those of samples from -1 to 1, as they were in training (speakerlab/process/processor.py
// of https://github.com/modelscope/3D-Speaker). Kaldi's own scale would change where soft sounds end at the
// floor of the logarithm.
class EmbeddingHead {
 public:
  static constexpr size_t kValues = 320; // of a frame

  explicit EmbeddingHead(NetworkWeights& weights);

  // Frames of kValues, with `border` frames of zeros at both ends. There are Fbank::kFrame samples at least.
  std::vector<float> compute(std::span<const float> samples, size_t border, const Team& team,
                             const CancelToken& cancel) const;

 private:
  struct Picture;
  struct Convolution {
    LinearLayer layer;
    size_t taps;   // in both directions: 3, or 1
    size_t stride; // over frequencies
  };
  struct Residual {
    Convolution first, second;
    std::vector<Convolution> shortcut; // none, or one
  };

  static Convolution convolution(NetworkWeights& weights, const std::string& name, size_t inputs, size_t taps,
                                 size_t stride);
  static void convolve(const Convolution& convolution, const Picture& in, const Picture* beside, bool relu,
                       Picture& out);
  const Picture& compute_strip(std::span<const float> rows, std::span<Picture> pictures,
                               const CancelToken& cancel) const;

  Fbank fbank_;
  std::vector<Convolution> ends_; // the first and the last
  std::vector<Residual> residuals_;
};

} // namespace voxgate
