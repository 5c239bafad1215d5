#include "layers/linear_layer.h"

#include "simd_dispatch.h"

#include <algorithm>

namespace voxgate {

LinearLayer::LinearLayer(NetworkWeights& weights, const std::string& name, const std::vector<int64_t>& shape,
                         bool has_bias, size_t width)
    : outputs_(static_cast<size_t>(shape[0])) {
  size_t taps = 1;
  for (size_t i = 2; i < shape.size(); ++i)
    taps *= static_cast<size_t>(shape[i]);
  const auto weight = taps_first(weights.take(name + ".weight", shape), outputs_, taps);
  const auto bias = has_bias ? weights.take(name + ".bias", {shape[0]}) : std::vector<float>{};
  if (Panels::vectors() == PanelVectors::tiles && PanelTiles::fits(outputs_, width, weight.size() / outputs_))
    tiles_.emplace(weight, bias, outputs_);
  else
    panels_.emplace(weight, bias, outputs_);
}

void LinearLayer::multiply(const PanelRows& rows, size_t count, float* out, size_t out_stride) const {
  if (tiles_)
    tiles_->multiply(rows, count, out, out_stride);
  else
    panels_->multiply(rows, count, out, out_stride); // NOLINT(bugprone-unchecked-optional-access)
}

VOXGATE_VECTOR_CLONES
void relu(float* values, size_t count) {
  for (size_t i = 0; i < count; ++i)
    values[i] = std::max(values[i], 0.0F);
}

} // namespace voxgate
