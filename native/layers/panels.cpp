#include "layers/panels.h"

#include "simd_dispatch.h"
#include "unroll.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace voxgate {
namespace {

constexpr size_t kLanes = Panels::kLanes;
constexpr size_t kRun = 32; // products that are added up by themselves, because long sums lose digits

// A layer, or some lanes of it, times all rows.
struct Product {
  PanelRows rows;
  size_t count;
  const float* weights; // of the first lane; kLanes floats from a depth to the next
  size_t panel;         // floats from a panel to the next
  const float* bias;    // null to add to what is in `out`
  float* out;
  size_t stride; // of `out`
  size_t filled; // lanes that are outputs
};

template <size_t kBytes, size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void multiply_rows(const Product& product, size_t row) {
  // NOLINTNEXTLINE(modernize-use-using): gcc takes the attribute of a template's size only here
  typedef float Vector __attribute__((vector_size(kBytes)));
  constexpr size_t kWidth = kBytes / sizeof(float);
  const auto& rows = product.rows;
  const size_t filled = std::min(product.filled, kVectors * kWidth);
  alignas(64) float totals[kRows][kVectors * kWidth];
  for (size_t i = 0; i < kRows; ++i)
    if (product.bias != nullptr)
      std::memcpy(totals[i], product.bias, sizeof totals[i]);
    else
      std::memcpy(totals[i], product.out + (row + i) * product.stride, filled * sizeof(float));
  const float* weights = product.weights;
  for (size_t piece = 0; piece < rows.pieces; ++piece)
    for (size_t begin = 0; begin < rows.width; begin += kRun) {
      const size_t run = std::min(kRun, rows.width - begin);
      const float* source = rows.data + row * rows.stride + piece * rows.step + begin;
      Vector sums[kRows][kVectors] = {};
      for (size_t k = 0; k < run; ++k, weights += kLanes, ++source) {
        Vector weight[kVectors];
        VOXGATE_UNROLL
        for (size_t v = 0; v < kVectors; ++v)
          std::memcpy(&weight[v], weights + v * kWidth / kLanes * product.panel + v * kWidth % kLanes,
                      kBytes);
        VOXGATE_UNROLL
        for (size_t i = 0; i < kRows; ++i) {
          const float value = source[i * rows.stride];
          VOXGATE_UNROLL
          for (size_t v = 0; v < kVectors; ++v)
            sums[i][v] += weight[v] * value;
        }
      }
      VOXGATE_UNROLL
      for (size_t i = 0; i < kRows; ++i)
        VOXGATE_UNROLL
      for (size_t v = 0; v < kVectors; ++v) {
        Vector total;
        std::memcpy(&total, totals[i] + v * kWidth, kBytes);
        total += sums[i][v];
        std::memcpy(totals[i] + v * kWidth, &total, kBytes);
      }
    }
  for (size_t i = 0; i < kRows; ++i) {
    float* target = product.out + (row + i) * product.stride;
    if (filled == kVectors * kWidth)
      std::memcpy(target, totals[i], sizeof totals[i]);
    else
      std::memcpy(target, totals[i], filled * sizeof(float));
  }
}

// `kRows` rows at a time, and what is left in halves of that.
template <size_t kBytes, size_t kRows, size_t kVectors>
[[gnu::always_inline]] inline void multiply_panel(const Product& product, size_t row = 0) {
  for (; row + kRows <= product.count; row += kRows)
    multiply_rows<kBytes, kRows, kVectors>(product, row);
  if constexpr (kRows > 1)
    multiply_panel<kBytes, kRows / 2, kVectors>(product, row);
}

// Two registers for the outputs and as many rows as there are registers for.
template <size_t kBytes, size_t kRows> [[gnu::always_inline]] inline void multiply_lanes(Product product) {
  constexpr size_t kWidth = kBytes / sizeof(float);
  const size_t filled = product.filled;
  for (size_t lane = 0; lane < filled; lane += 2 * kWidth) {
    Product part = product;
    part.weights += lane / kLanes * product.panel + lane % kLanes;
    part.bias = product.bias == nullptr ? nullptr : product.bias + lane;
    part.out += lane;
    part.filled = filled - lane;
    if (part.filled <= kWidth)
      multiply_panel<kBytes, kRows, 1>(part);
    else
      multiply_panel<kBytes, kRows, 2>(part);
  }
}

void multiply_narrow(const Product& product) {
#if defined(__aarch64__) // which has 32 registers
  multiply_lanes<16, 12>(product);
#else
  multiply_lanes<16, 6>(product);
#endif
}

using Multiply = void (*)(const Product&);

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) void multiply_avx2(const Product& product) {
  multiply_lanes<32, 6>(product);
}

__attribute__((target("avx512f,fma"))) void multiply_avx512(const Product& product) {
  multiply_lanes<64, 12>(product);
}

Multiply multiply_with(PanelVectors vectors) {
  switch (vectors) {
  case PanelVectors::avx512:
  case PanelVectors::tiles:
    return multiply_avx512;
  case PanelVectors::avx2:
    return multiply_avx2;
  default:
    return multiply_narrow;
  }
}

#else

Multiply multiply_with(PanelVectors) {
  return multiply_narrow;
}

#endif

std::atomic<PanelVectors> used_vectors = Panels::widest();

} // namespace

PanelVectors Panels::widest() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && processor_bfloat16() == Bfloat16::tiles)
    return PanelVectors::tiles;
  if (__builtin_cpu_supports("avx512f"))
    return PanelVectors::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return PanelVectors::avx2;
#endif
  return PanelVectors::narrow;
}

void Panels::use(PanelVectors vectors) {
  used_vectors = vectors;
}

PanelVectors Panels::vectors() {
  return used_vectors;
}

Panels::Panels(const std::vector<float>& weight, const std::vector<float>& bias, size_t outputs)
    : outputs_(outputs), depth_(weight.size() / outputs) {
  const size_t panels = (outputs + kLanes - 1) / kLanes;
  weights_.resize(panels * depth_);
  bias_.resize(panels);
  for (size_t output = 0; output < outputs; ++output)
    for (size_t k = 0; k < depth_; ++k)
      weights_[output / kLanes * depth_ + k].values[output % kLanes] = weight[output * depth_ + k];
  for (size_t i = 0; i < bias.size(); ++i)
    bias_[i / kLanes].values[i % kLanes] = bias[i];
}

void Panels::multiply(const PanelRows& rows, size_t count, float* out, size_t out_stride) const {
  multiply_with(used_vectors)({rows, count, weights_[0].values.data(), depth_ * kLanes,
                               bias_[0].values.data(), out, out_stride, outputs_});
}

void Panels::add(const PanelRows& rows, size_t count, float* out, size_t out_stride) const {
  multiply_with(used_vectors)(
      {rows, count, weights_[0].values.data(), depth_ * kLanes, nullptr, out, out_stride, outputs_});
}

std::vector<float> taps_first(const std::vector<float>& weight, size_t outputs, size_t taps) {
  const size_t inputs = weight.size() / outputs / taps;
  std::vector<float> result(weight.size());
  for (size_t output = 0; output < outputs; ++output)
    for (size_t input = 0; input < inputs; ++input)
      for (size_t tap = 0; tap < taps; ++tap)
        result[(output * taps + tap) * inputs + input] = weight[(output * inputs + input) * taps + tap];
  return result;
}

} // namespace voxgate
