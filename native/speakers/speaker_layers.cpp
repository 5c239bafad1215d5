#include "speakers/speaker_layers.h"

#include "vector_clones.h"

#include <algorithm>

namespace voxgate {

Panels speaker_layer(SpeakerWeights& weights, const std::string& name, const std::vector<int64_t>& shape,
                     bool has_bias) {
  size_t taps = 1;
  for (size_t i = 2; i < shape.size(); ++i)
    taps *= static_cast<size_t>(shape[i]);
  const auto outputs = static_cast<size_t>(shape[0]);
  const auto weight = taps_first(weights.take(name + ".weight", shape), outputs, taps);
  return {weight, has_bias ? weights.take(name + ".bias", {shape[0]}) : std::vector<float>{}, outputs};
}

VOXGATE_VECTOR_CLONES
void relu(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = std::max(values[i], 0.0F);
}

} // namespace voxgate
