#pragma once

#include "layers/network_weights.h"
#include "layers/panel_tiles.h"
#include "layers/panels.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace voxgate {

inline int64_t extent(size_t value) {
  return static_cast<int64_t>(value);
}

// A linear layer. Where there are tiles for its product it is computed with them, so it is for networks that
// can do with fewer digits than floats have: embeddings and turns. The segmentation cannot.
class LinearLayer {
 public:
  // Takes the weights, of `shape` [outputs][inputs][taps...], and the bias, if the layer has one. Taps come
  // before the inputs in the rows that it is multiplied with. These have pieces of `width` values.
  LinearLayer(NetworkWeights& weights, const std::string& name, const std::vector<int64_t>& shape,
              bool has_bias, size_t width);

  // See Panels.
  void multiply(const PanelRows& rows, size_t count, float* out, size_t out_stride) const;
  size_t outputs() const { return outputs_; }

 private:
  size_t outputs_;
  std::optional<Panels> panels_; // one of the two
  std::optional<PanelTiles> tiles_;
};

void relu(float* values, size_t count);

} // namespace voxgate
