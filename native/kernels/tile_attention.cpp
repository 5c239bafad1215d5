// Attention on AMX tiles: tile_ops.h says what is computed. Keys are the rows of a product and queries its
// columns, so that a row of scores belongs to a key and the softmax of 16 queries runs down their lanes. What
// it gives are the columns of the next product, whose rows are the channels of the values.
#include "tile_kernels.h"

#ifdef VOXGATE_HAS_BFLOAT16

#include <cmath>

namespace voxgate {
VOXGATE_AMX void tile_hear(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(tile_hear);
  const Positions positions(user);
  const int64_t width = dst->src[0]->ne[1] / 3;
  const int64_t depth = width / positions.heads;
  const int64_t blocks = depth / kBlock;
  const HeardLayout layout(width, positions.count);
  const float* const bias = floats(dst->src[1]);
  const auto at = [&](int64_t begin) { return reinterpret_cast<Value*>(floats(dst) + begin); };
  multiply(dst->src[0], dst->src[2], positions.tiles, ith, nth,
           [&](int64_t strip, int64_t tile, const Results& results) VOXGATE_AMX {
             const int64_t channel = strip * kRows % width;
             const int64_t head = channel / depth;
             const int64_t block = channel % depth / kBlock;
             const auto row = [&](int64_t i) {
               return _mm512_add_ps(results[i], _mm512_set1_ps(bias[strip * kRows + i]));
             };
             const int64_t part = strip * kRows / width;
             if (part < 2) {
               __m512i pairs[kPairs];
               for (int64_t pair = 0; pair < kPairs; ++pair)
                 pairs[pair] = pack(row(2 * pair), row(2 * pair + 1));
               if (part == 1) // keys are the rows of a product, not its columns
                 transpose(pairs);
               Value* const to = at(part == 0 ? 0 : layout.keys) +
                                 ((head * positions.tiles + tile) * blocks + block) * kTileValues;
               for (int64_t pair = 0; pair < kPairs; ++pair)
                 _mm512_storeu_si512(to + 2 * kTile * pair, pairs[pair]);
               return;
             }
             const __mmask16 lanes = positions.lanes(tile);
             float* const rows = floats(dst) + layout.rows + tile * panel_floats(width) + channel * kTile;
             Value* const to = at(layout.values) + (channel / kTile * layout.pairs + tile / 2) * kTileValues;
             for (int64_t i = 0; i < kRows; ++i) {
               const __m512 value = _mm512_maskz_mov_ps(lanes, row(i));
               _mm512_storeu_ps(rows + i * kTile, value);
               Value* const half = to + i / kTile * layout.pairs * kTileValues + i % kTile * kBlock;
               _mm256_storeu_si256(reinterpret_cast<__m256i*>(half + tile % 2 * kTile),
                                   (__m256i)_mm512_cvtneps_pbh(value));
               if (tile % 2 == 0 && tile + 1 == positions.tiles) // there is no other half
                 _mm256_storeu_si256(reinterpret_cast<__m256i*>(half + kTile), _mm256_setzero_si256());
             }
           });
}

VOXGATE_AMX void tile_attention(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(tile_attention);
  const Positions positions(user);
  const int64_t width = dst->ne[0] * 2 / kTile;
  const int64_t depth = width / positions.heads;
  const int64_t blocks = depth / kBlock;
  const int64_t tiles = positions.tiles;
  const HeardLayout layout(width, positions.count);
  const auto at = [&](int64_t begin) { return reinterpret_cast<const Value*>(floats(dst->src[0]) + begin); };
  const float scale = 1 / std::sqrt(static_cast<float>(depth));
  Tiles& t = thread_tiles();
  // The working memory holds the scores of two tiles of queries, then their probabilities.
  const int64_t score_floats = 2 * layout.pairs * kTile * kTile;
  float* const scores[2] = {reinterpret_cast<float*>(t.weights),
                            reinterpret_cast<float*>(t.weights) + score_floats};
  Value* const weights[2] = {reinterpret_cast<Value*>(scores[1] + score_floats),
                             reinterpret_cast<Value*>(scores[1] + score_floats) + layout.pairs * kTileValues};
  configure();
  for (int64_t job = ith; job < positions.heads * layout.pairs; job += nth) {
    const int64_t head = job / layout.pairs;
    const int64_t tile = job % layout.pairs * 2;
    const bool two = tile + 1 < tiles;
    const Value* const queries = at(0) + (head * tiles + tile) * blocks * kTileValues;
    for (int64_t key = 0; key < tiles; key += 2) {
      const Value* const keys = at(layout.keys) + (head * tiles + key) * blocks * kTileValues;
      const int64_t floats = key * kTile * kTile;
      multiply_tiles(keys, key + 1 < tiles ? keys + blocks * kTileValues : keys, kTileValues, kLine, queries,
                     two ? queries + blocks * kTileValues : nullptr, blocks,
                     {scores[0] + floats, scores[0] + floats + kTile * kTile, scores[1] + floats,
                      scores[1] + floats + kTile * kTile});
    }
    __m512 factors[2] = {};
    for (int i = 0; i < (two ? 2 : 1); ++i)
      factors[i] = _mm512_div_ps(_mm512_set1_ps(1),
                                 soften(scores[i], positions.count, layout.pairs * kTile, scale, weights[i]));
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t channel = head * depth + block * kBlock;
      const Value* const v = at(layout.values) + channel / kTile * layout.pairs * kTileValues;
      multiply_tiles(v, v + layout.pairs * kTileValues, kTileValues, kLine, weights[0],
                     two ? weights[1] : nullptr, layout.pairs,
                     {t.sums[0][0], t.sums[1][0], t.sums[2][0], t.sums[3][0]});
      for (int64_t i = 0; i < (two ? 2 : 1); ++i) {
        const Results results{t.sums[2 * i][0], t.sums[2 * i + 1][0]};
        Value* const to = values(dst) + ((tile + i) * (width / kBlock) + channel / kBlock) * kTileValues;
        for (int64_t pair = 0; pair < kPairs; ++pair)
          _mm512_storeu_si512(to + 2 * kTile * pair, pack(_mm512_mul_ps(results[2 * pair], factors[i]),
                                                          _mm512_mul_ps(results[2 * pair + 1], factors[i])));
      }
    }
  }
  release();
}

} // namespace voxgate

#endif
