#pragma once

#include "audio/fbank.h"
#include "cancel.h"
#include "speakers/panels.h"
#include "speakers/speaker_weights.h"

#include <span>
#include <string>
#include <vector>

namespace voxgate {

// CAM++ (https://arxiv.org/abs/2303.00332) as 3D-Speaker trained it on Chinese and English: a vector that
// points in a similar direction for all speech of one person.
class Embedding {
 public:
  static constexpr size_t kSize = 192;

  explicit Embedding(SpeakerWeights& weights);

  // Without masks the result is one embedding of all samples. Each mask adds one embedding of the time in
  // which that mask is not zero: its values, of any number, are weights of equal stretches of the time. There
  // must be one frame of features at least (Fbank::kFrame samples). An embedding of a mask of zeros is that
  // of no sound, which means nothing.
  std::vector<float> embeddings(std::span<const float> samples, std::span<const std::span<const float>> masks,
                                const CancelToken& cancel) const;

 private:
  // A picture of frequencies and times with a border of zeros: [frequency][time][channel].
  struct Picture;

  struct Convolution {
    Panels panels;
    size_t taps;   // in both directions: 3, or 1
    size_t stride; // over frequencies
  };
  struct Residual {
    Convolution first, second;
    std::vector<Convolution> shortcut; // none, or one
  };
  struct Norm {
    std::vector<float> factor, summand;
  };
  struct Layer {
    Norm norm;
    Panels bottleneck, local, context, gate;
  };
  struct Block {
    std::vector<Layer> layers;
    size_t dilation;
    Norm norm;
    Panels transit;
  };

  static Convolution convolution(SpeakerWeights& weights, const std::string& name, size_t inputs, size_t taps,
                                 size_t stride);
  static Norm norm(SpeakerWeights& weights, const std::string& name, size_t channels);
  static Layer layer(SpeakerWeights& weights, const std::string& name, size_t channels);
  static Picture convolve(const Convolution& convolution, const Picture& in);
  static Picture residual(const Residual& block, const Picture& in);
  static void extend(const Layer& layer, size_t dilation, size_t frames, size_t channels, size_t stride,
                     std::vector<float>& features);

  std::vector<float> head(std::span<const float> samples, size_t& frames, const CancelToken& cancel) const;
  std::vector<float> features(std::span<const float> samples, size_t& frames,
                              const CancelToken& cancel) const;

  Fbank fbank_;
  std::vector<Convolution> ends_; // the first and the last of the head
  std::vector<Residual> residuals_;
  std::vector<Panels> tdnn_, dense_; // one each
  std::vector<Block> blocks_;
};

} // namespace voxgate
