#pragma once

// What the operations of tile_ops.h share: tile_ops.cpp and tile_attention.cpp have them.
#include "amx_tiles.h"
#include "speech_kernels.h"
#include "tile_ops.h"

#ifdef VOXGATE_HAS_BFLOAT16

#include "vec.h"

namespace voxgate {

static_assert(kTilePositions == kTile && kTileChannels == kBlock && kRows == kBlock);
constexpr int64_t kPairs = kBlock / 2;

struct Positions {
  explicit Positions(void* user)
      : count(static_cast<int64_t>(reinterpret_cast<uintptr_t>(user) & 0xFFFF)),
        heads(static_cast<int64_t>(reinterpret_cast<uintptr_t>(user) >> 16)), tiles(tiles_of(count)) {}
  int64_t count, heads, tiles;

  __mmask16 lanes(int64_t tile) const {
    const int64_t left = count - tile * kTile;
    return left >= kTile ? 0xFFFF : static_cast<__mmask16>((1U << left) - 1);
  }
};

inline Value* values(const ggml_tensor* tensor) {
  return static_cast<Value*>(tensor->data);
}

// Two channels of 16 positions, side by side.
VOXGATE_AMX inline __m512i pack(__m512 even, __m512 odd) {
  const __m512i turned = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                          22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(turned, (__m512i)_mm512_cvtne2ps_pbh(odd, even));
}

// Scores of a tile of queries, a row for each key, to probabilities in pairs of keys. Returns what they are
// to be divided by.
VOXGATE_AMX inline __m512 soften(const float* scores, int64_t keys, int64_t pairs, float scale, Value* to) {
  __m512 highest = _mm512_loadu_ps(scores);
  for (int64_t key = 1; key < keys; ++key)
    highest = _mm512_max_ps(highest, _mm512_loadu_ps(scores + key * kTile));
  const __m512 factor = _mm512_set1_ps(scale);
  __m512 sums[2] = {};
  for (int64_t key = 0; key < 2 * pairs; key += 2, to += 2 * kTile) {
    __m512 weights[2] = {};
    for (int64_t i = 0; i < 2; ++i) {
      if (key + i < keys) {
        const __m512 below = _mm512_sub_ps(_mm512_loadu_ps(scores + (key + i) * kTile), highest);
        weights[i] = ggml_v_expf(_mm512_mul_ps(below, factor));
        sums[i] = _mm512_add_ps(sums[i], weights[i]);
      }
    }
    _mm512_storeu_si512(to, pack(weights[0], weights[1]));
  }
  return _mm512_add_ps(sums[0], sums[1]);
}

// What a strip gives for one tile of positions. The operator returns the row of a channel.
struct Results {
  const float* low;
  const float* high;
  __m512 operator[](int64_t row) const {
    return _mm512_load_ps(row < kTile ? low + row * kTile : high + (row - kTile) * kTile);
  }
};

// A strip of weights in halves, as published files have the one matrix whose rows are no whole blocks. What
// is missing of the last block are zeros.
VOXGATE_AMX inline void lay_out_halves(const ggml_half* rows, int64_t width, int64_t blocks, Value* to) {
  for (int64_t row = 0; row < kRows; ++row, rows += width, to += row_values(blocks))
    for (int64_t i = 0; i < blocks * kBlock; i += kTile) {
      const auto there = static_cast<__mmask16>(i + kTile <= width ? 0xFFFF
                                                : i < width        ? (1U << (width - i)) - 1
                                                                   : 0);
      const __m512 floats = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(there, rows + i));
      _mm256_store_si256(reinterpret_cast<__m256i*>(to + i), (__m256i)_mm512_cvtneps_pbh(floats));
    }
}

VOXGATE_AMX inline void lay_out_strip(const ggml_tensor* weight, int64_t strip, int64_t blocks, Value* to) {
  const int64_t first = strip * kRows;
  if (weight->type == GGML_TYPE_F16) {
    lay_out_halves(static_cast<const ggml_half*>(weight->data) + first * weight->ne[0], weight->ne[0], blocks,
                   to);
    return;
  }
  lay_out_weights(static_cast<const block_q8_0*>(weight->data) + first * blocks, blocks,
                  std::min<int64_t>(kRows, weight->ne[1] - first), blocks, to);
}

// The strip in the thread's memory times tiles of positions; `use` gets the results of each.
template <typename Use>
VOXGATE_AMX void multiply_strip(Tiles& t, const Value* packed, int64_t blocks, int64_t begin, int64_t end,
                                const Use& use) {
  const Value* const more = t.weights + kTile * row_values(blocks);
  const auto stride = row_values(blocks) * static_cast<int64_t>(sizeof(Value));
  for (int64_t tile = begin; tile < end; tile += 2) {
    const Value* const columns = packed + tile * blocks * kTileValues;
    const bool two = tile + 1 < end;
    multiply_tiles(t.weights, more, kBlock, stride, columns, two ? columns + blocks * kTileValues : nullptr,
                   blocks, {t.sums[0][0], t.sums[1][0], t.sums[2][0], t.sums[3][0]});
    use(tile, Results{t.sums[0][0], t.sums[1][0]});
    if (two)
      use(tile + 1, Results{t.sums[2][0], t.sums[3][0]});
  }
}

// All strips of a thread; `use` gets the strip, the tile of positions and the results.
template <typename Use>
VOXGATE_AMX void multiply(const ggml_tensor* weight, const ggml_tensor* packed, int64_t tiles, int ith,
                          int nth, const Use& use) {
  const int64_t blocks = (weight->ne[0] + kBlock - 1) / kBlock;
  const int64_t strips = weight->ne[1] / kRows;
  const int64_t panel = panel_tiles(tiles, blocks);
  const int64_t panels = (tiles + panel - 1) / panel;
  Tiles& t = thread_tiles();
  configure();
  for (int64_t job = ith; job < strips * panels; job += nth) {
    const int64_t strip = job % strips;
    const int64_t begin = job / strips * panel;
    lay_out_strip(weight, strip, blocks, t.weights);
    multiply_strip(t, values(packed), blocks, begin, std::min(tiles, begin + panel),
                   [&](int64_t tile, const Results& results) VOXGATE_AMX { use(strip, tile, results); });
  }
  release();
}

void tile_hear(ggml_tensor* dst, int ith, int nth, void* user);
void tile_attention(ggml_tensor* dst, int ith, int nth, void* user);

} // namespace voxgate

#endif
