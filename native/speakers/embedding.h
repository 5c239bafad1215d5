#pragma once

#include "cancel.h"
#include "layers/linear_layer.h"
#include "layers/network_weights.h"
#include "layers/team.h"
#include "speakers/embedding_head.h"

#include <span>
#include <string>
#include <vector>

namespace voxgate {

// CAM++ (https://arxiv.org/abs/2303.00332) as 3D-Speaker trained it on Chinese and English: a vector that
// points in a similar direction for all speech of one person.
class Embedding {
 public:
  static constexpr size_t kSize = 192;

  explicit Embedding(NetworkWeights& weights);

  // Without masks the result is one embedding of all samples. Each mask adds one embedding of the time in
  // which that mask is not zero: its values, of any number, are weights of equal stretches of the time. There
  // must be one frame of features at least (Fbank::kFrame samples). An embedding of a mask of zeros is that
  // of no sound, which means nothing. Any number of threads computes the same.
  std::vector<float> embeddings(std::span<const float> samples, std::span<const std::span<const float>> masks,
                                const Team& team, const CancelToken& cancel) const;

 private:
  struct Features;

  struct Norm {
    std::vector<float> factor, summand;
  };
  struct Layer {
    Norm norm;
    LinearLayer bottleneck, local, context, gate;
  };
  struct Block {
    std::vector<Layer> layers;
    size_t dilation;
    Norm norm;
    LinearLayer transit;
  };

  static Norm norm(NetworkWeights& weights, const std::string& name, size_t channels);
  static Layer layer(NetworkWeights& weights, const std::string& name, size_t channels);
  static void extend(const Layer& layer, size_t dilation, Features& features, const Team& team,
                     const CancelToken& cancel);

  std::vector<float> features(std::span<const float> samples, size_t& frames, const Team& team,
                              const CancelToken& cancel) const;

  EmbeddingHead head_;
  std::vector<LinearLayer> tdnn_, dense_; // one each
  std::vector<Block> blocks_;
};

} // namespace voxgate
