#pragma once

#include <array>
#include <cstddef>
#include <vector>

// The product that nearly all layers of our own networks consist of.

namespace voxgate {

// Rows of values in memory, to multiply with. A row consists of pieces of equal width, so that the taps of a
// convolution, which lie apart, are one row.
struct PanelRows {
  const float* data;
  size_t stride; // from a row to the next
  size_t width;  // of a piece
  size_t pieces = 1;
  size_t step = 0; // from a piece to the next
};

// What products are computed with. The results of different vectors differ in the last bits. With `tiles` the
// layers that bear it are rounded (layers/panel_tiles.h), and the others use avx512.
enum class PanelVectors { narrow, avx2, avx512, tiles };

// The weights of a layer. A panel is a group of outputs that lie side by side and fill a line of the cache: a
// register of AVX-512, or two of AVX2. The last panel is filled up with zeros.
class Panels {
 public:
  static constexpr size_t kLanes = 16;

  // `weight` is [outputs][depth] in the order of the values of a row. An empty `bias` means zeros.
  Panels(const std::vector<float>& weight, const std::vector<float>& bias, size_t outputs);

  // Computes `count` rows of `outputs` values, which begin `out_stride` apart. Each is computed in the same
  // way at every place among the others.
  void multiply(const PanelRows& rows, size_t count, float* out, size_t out_stride) const;

  // Adds the products to what is in `out`, and no bias.
  void add(const PanelRows& rows, size_t count, float* out, size_t out_stride) const;

  size_t outputs() const { return outputs_; }

  // The widest vectors that this processor has.
  static PanelVectors widest();
  // From now on products are computed with these, which the processor must have, and those of tiles in models
  // that are loaded from now on. The level of SVC_CPU says which (backends/cpu_library.cpp).
  static void use(PanelVectors vectors);
  static PanelVectors vectors();

 private:
  struct alignas(64) Lanes {
    std::array<float, kLanes> values{};
  };

  size_t outputs_;
  size_t depth_;
  std::vector<Lanes> weights_; // [panel][depth]
  std::vector<Lanes> bias_;    // [panel]
};

// Puts the taps of a convolution before its inputs: [outputs][inputs][taps] becomes [outputs][taps][inputs],
// which is the order of rows that hold whole frames.
std::vector<float> taps_first(const std::vector<float>& weight, size_t outputs, size_t taps);

} // namespace voxgate
