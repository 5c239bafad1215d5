#pragma once

// Products in bfloat16 with the instructions of AVX-512 for them, for processors that have no tiles. All is
// laid out as for tiles (amx_tiles.h).
#include "../unroll.h"
#include "amx_tiles.h"

#ifdef VOXGATE_HAS_BFLOAT16

#include <cstring>

#define VOXGATE_BFLOAT16 __attribute__((target("avx512bf16")))

namespace voxgate {

// Spreads two values of a row of weights.
inline __m512i pair_at(const Value* from) {
  int32_t pair = 0;
  std::memcpy(&pair, from, sizeof pair);
  return _mm512_set1_epi32(pair);
}

// 16 rows of weights times one tile of columns, or 8 rows times two. Either way the sums fill half of the
// registers, which hides how long an instruction takes.
template <int kTiles>
VOXGATE_BFLOAT16 inline void multiply_rows(const Value* weights,
                                           const std::array<const Value*, kTiles>& columns, int64_t blocks,
                                           const std::array<float*, kTiles>& results) {
  constexpr int kCount = static_cast<int>(kTile) / kTiles;
  __m512 sums[kCount][kTiles] = {};
  for (int64_t block = 0; block < blocks; ++block)
    for (int64_t pair = 0; pair < kBlock; pair += 2) {
      __m512bh right[kTiles];
      VOXGATE_UNROLL
      for (int i = 0; i < kTiles; ++i)
        right[i] = (__m512bh)_mm512_load_si512(columns[i] + block * kTileValues + pair * kTile);
      VOXGATE_UNROLL
      for (int row = 0; row < kCount; ++row) {
        const auto left = (__m512bh)pair_at(weights + block * kTileValues + row * kBlock + pair);
        VOXGATE_UNROLL
        for (int i = 0; i < kTiles; ++i)
          sums[row][i] = _mm512_dpbf16_ps(sums[row][i], left, right[i]);
      }
    }
  VOXGATE_UNROLL
  for (int row = 0; row < kCount; ++row)
    VOXGATE_UNROLL
  for (int i = 0; i < kTiles; ++i)
    _mm512_store_ps(results[i] + row * kTile, sums[row][i]);
}

// As multiply_tiles, of tiles of weights that lie one behind the other.
VOXGATE_BFLOAT16 inline void multiply_vectors(const Value* w0, const Value* w1, const Value* c0,
                                              const Value* c1, int64_t blocks,
                                              const std::array<float*, 4>& results) {
  for (size_t i = 0; i < 2; ++i) {
    const Value* const weights = i == 0 ? w0 : w1;
    if (c1 == nullptr)
      multiply_rows<1>(weights, {c0}, blocks, {results[i]});
    else
      for (int64_t row = 0; row < kTile; row += kTile / 2)
        multiply_rows<2>(weights + row * kBlock, {c0, c1}, blocks,
                         {results[i] + row * kTile, results[i + 2] + row * kTile});
  }
}

} // namespace voxgate

#endif
