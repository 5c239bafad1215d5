#pragma once

// The products and the scores of attention in floats: speech_attention.cpp and unmasked_attention.cpp share
// them.
#include "speech_ops.h"
#include "vectors.h"

#include <algorithm>
#include <cstdint>

namespace voxgate {

// The sums of six rows and a block of columns fill the registers, but for those of one row of B.
#if defined(__AVX512BW__)
constexpr int64_t kVectorBytes = 64, kVectors = 4;
#elif defined(__AVX__)
constexpr int64_t kVectorBytes = 32, kVectors = 2;
#elif defined(__x86_64__)
constexpr int64_t kVectorBytes = 16, kVectors = 2;
#else
constexpr int64_t kVectorBytes = 16, kVectors = 4;
#endif
using Vector __attribute__((vector_size(kVectorBytes), aligned(4), may_alias)) = float;
constexpr int64_t kVectorFloats = kVectorBytes / static_cast<int64_t>(sizeof(float));
constexpr int64_t kPanel = kVectors * kVectorFloats; // columns of a block

// `kRows` rows of A times a block of columns of B, whose rows are `depth` long and lie ldb apart.
template <int kRows>
void block(const float* a, int64_t lda, const float* b, int64_t ldb, float* c, int64_t ldc, int64_t depth) {
  Vector sums[kRows][kVectors] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector columns[kVectors];
    VOXGATE_UNROLL
    for (int i = 0; i < kVectors; ++i)
      columns[i] = *reinterpret_cast<const Vector*>(b + k * ldb + kVectorFloats * i);
    VOXGATE_UNROLL
    for (int row = 0; row < kRows; ++row) {
      const float factor = a[row * lda + k];
      VOXGATE_UNROLL
      for (int i = 0; i < kVectors; ++i)
        sums[row][i] += factor * columns[i];
    }
  }
  VOXGATE_UNROLL
  for (int row = 0; row < kRows; ++row)
    VOXGATE_UNROLL
  for (int i = 0; i < kVectors; ++i)
    *reinterpret_cast<Vector*>(c + row * ldc + kVectorFloats * i) = sums[row][i];
}

// `columns` is a multiple of kColumnBlock. The rows of B lie ldb apart, and the columns from `column` on
// begin at b + column * step. Whole rows have a step of 1. Panels, which lie one behind the other, have an
// ldb of kPanel and the depth as their step; they stay in the first cache where rows of many columns would
// not.
inline void product(int64_t rows, const float* a, int64_t lda, const float* b, int64_t ldb, float* c,
                    int64_t ldc, int64_t depth, int64_t columns, int64_t step = 1) {
  using Block = decltype(&block<1>);
  constexpr Block kBlocks[] = {nullptr, block<1>, block<2>, block<3>, block<4>, block<5>, block<6>};
  static_assert(kQueryBlock == 6);
  static_assert(kColumnBlock % kPanel == 0);
  for (int64_t column = 0; column < columns; column += kPanel)
    kBlocks[rows](a, lda, b + column * step, ldb, c + column, ldc, depth);
}

// Returns the highest.
inline float scale_scores(float* __restrict scores, float scale, const float* __restrict mask,
                          int64_t count) {
  if (mask != nullptr) {
    for (int64_t i = 0; i < count; ++i)
      scores[i] = scores[i] * scale + mask[i];
  } else {
    for (int64_t i = 0; i < count; ++i)
      scores[i] *= scale;
  }
  constexpr int64_t kLanes = 32;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, scores[0]);
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = scores[i + lane] > lanes[lane] ? scores[i + lane] : lanes[lane];
  const float highest = *std::max_element(lanes, lanes + kLanes);
  return whole < count ? std::max(highest, *std::max_element(scores + whole, scores + count)) : highest;
}

} // namespace voxgate
