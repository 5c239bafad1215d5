#pragma once

#include "layers/panels.h"

#include <cstdint>
#include <vector>

namespace voxgate {

// The weights of a layer for the tiles of a processor with AMX: they and the rows are rounded to bfloat16,
// and the sums are floats. Rows have whole blocks of kBlock values.
class PanelTiles {
 public:
  static constexpr size_t kBlock = 32; // values, the depth of a tile
  static constexpr size_t kDeepest = 1600;

  // Whether layers of these sizes can be computed.
  static bool fits(size_t outputs, size_t width, size_t depth);

  PanelTiles(const std::vector<float>& weight, const std::vector<float>& bias, size_t outputs);

  // As Panels::multiply. A row is computed in the same way at every place among the others.
  void multiply(const PanelRows& rows, size_t count, float* out, size_t out_stride) const;

 private:
  static constexpr size_t kTile = 16; // outputs, and rows
  struct alignas(64) Tile {
    uint16_t high[kTile * kBlock]; // bfloat16: pairs of depths, for each output
    uint16_t low[kTile * kBlock];  // what rounding left
  };
  struct alignas(64) Bias {
    float values[kTile];
  };

  size_t blocks_;
  std::vector<Tile> weights_; // [tile of outputs][block]
  std::vector<Bias> bias_;    // [tile of outputs]
};

} // namespace voxgate
