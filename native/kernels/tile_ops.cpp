// SenseVoice's encoder on AMX tiles: tile_ops.h says what is computed, amx_tiles.h how tiles are used.
// Weights are the rows of each product, so a result has a row of positions for each channel, and the next
// product takes pairs of such rows: nothing is turned but the keys. Threads divide strips of channels, tiles
// of positions or heads, and each number is computed by one of them in an order of its own.
#include "tile_kernels.h"

#ifdef VOXGATE_HAS_BFLOAT16

#include <cmath>

namespace voxgate {
namespace {

template <bool kPacked> VOXGATE_AMX void tile_norm(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(tile_norm);
  const Positions positions(user);
  const float* const weight = floats(dst->src[1]);
  const float* const bias = floats(dst->src[2]);
  const int64_t width = dst->src[1]->ne[0];
  const auto divisor = _mm512_set1_ps(1 / static_cast<float>(width));
  for (int64_t tile = ith; tile < positions.tiles; tile += nth) {
    const float* const x = floats(dst->src[0]) + tile * panel_floats(width);
    const auto row = [&](int64_t channel) { return _mm512_loadu_ps(x + channel * kTile); };
    __m512 sums[4] = {};
    for (int64_t i = 0; i < width; i += 4)
      for (int64_t lane = 0; lane < 4; ++lane)
        sums[lane] = _mm512_add_ps(sums[lane], row(i + lane));
    const auto added = [&] {
      return _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
    };
    const __m512 mean = _mm512_mul_ps(added(), divisor);
    std::fill_n(sums, 4, _mm512_setzero_ps());
    for (int64_t i = 0; i < width; i += 4)
      for (int64_t lane = 0; lane < 4; ++lane) {
        const __m512 off = _mm512_sub_ps(row(i + lane), mean);
        sums[lane] = _mm512_fmadd_ps(off, off, sums[lane]);
      }
    const __m512 variance = _mm512_mul_ps(added(), divisor);
    const __m512 scale = _mm512_div_ps(_mm512_set1_ps(1),
                                       _mm512_sqrt_ps(_mm512_add_ps(variance, _mm512_set1_ps(kTileEpsilon))));
    const auto normal = [&](int64_t channel) {
      const __m512 off = _mm512_mul_ps(_mm512_sub_ps(row(channel), mean), scale);
      return _mm512_fmadd_ps(off, _mm512_set1_ps(weight[channel]), _mm512_set1_ps(bias[channel]));
    };
    if constexpr (!kPacked) {
      for (int64_t i = 0; i < width; ++i)
        _mm512_storeu_ps(floats(dst) + tile * panel_floats(width) + i * kTile, normal(i));
      continue;
    }
    Value* to = values(dst) + tile * 2 * packed_floats(width);
    for (int64_t i = 0; i < width; i += 2, to += 2 * kTile)
      _mm512_storeu_si512(to, pack(normal(i), normal(i + 1)));
    std::fill(to, values(dst) + (tile + 1) * 2 * packed_floats(width), Value{0});
  }
}

VOXGATE_AMX void tile_remember(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(tile_remember);
  const Positions positions(user);
  const int64_t width = dst->src[0]->ne[1];
  const float* const bias = floats(dst->src[1]);
  const float* const rows = floats(dst->src[3]) + HeardLayout(width, positions.count).rows;
  const float* const kernel = floats(dst->src[4]);
  const int64_t taps = dst->src[4]->ne[0];
  const float* const carried = dst->src[5] != nullptr ? floats(dst->src[5]) : nullptr;
  const int64_t middle = (taps - 1) / 2;
  // For each tap where its lanes lie in the tile and the one before, or the one behind.
  __m512i from[kMaxTileTaps];
  for (int64_t tap = 0; tap < taps; ++tap)
    from[tap] = _mm512_add_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                                 _mm512_set1_epi32(static_cast<int>((tap - middle) & (kTile - 1))));
  multiply(dst->src[0], dst->src[2], positions.tiles, ith, nth,
           [&](int64_t strip, int64_t tile, const Results& results) VOXGATE_AMX {
             for (int64_t i = 0; i < kRows; ++i) {
               const int64_t channel = strip * kRows + i;
               const int64_t panel = panel_floats(width);
               const int64_t place = tile * panel + channel * kTile;
               const __m512 own = _mm512_loadu_ps(rows + place);
               const __m512 before = tile > 0 ? _mm512_loadu_ps(rows + place - panel) : _mm512_setzero_ps();
               const __m512 after =
                   tile + 1 < positions.tiles ? _mm512_loadu_ps(rows + place + panel) : _mm512_setzero_ps();
               const float* const factors = kernel + channel * taps;
               __m512 past = own;
               for (int64_t tap = 0; tap < middle; ++tap)
                 past = _mm512_fmadd_ps(_mm512_permutex2var_ps(before, from[tap], own),
                                        _mm512_set1_ps(factors[tap]), past);
               __m512 coming = _mm512_add_ps(results[i], _mm512_set1_ps(bias[channel]));
               for (int64_t tap = middle; tap < taps; ++tap)
                 coming = _mm512_fmadd_ps(_mm512_permutex2var_ps(own, from[tap], after),
                                          _mm512_set1_ps(factors[tap]), coming);
               __m512 sum = _mm512_add_ps(past, coming);
               if (carried != nullptr)
                 sum = _mm512_add_ps(sum, _mm512_loadu_ps(carried + place));
               _mm512_storeu_ps(floats(dst) + place, sum);
             }
           });
}

VOXGATE_AMX void tile_expand(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(tile_expand);
  const Positions positions(user);
  const int64_t blocks = dst->src[0]->ne[1] / kBlock;
  const float* const bias = floats(dst->src[1]);
  multiply(dst->src[0], dst->src[2], positions.tiles, ith, nth,
           [&](int64_t strip, int64_t tile, const Results& results) VOXGATE_AMX {
             const auto row = [&](int64_t i) {
               return _mm512_max_ps(_mm512_add_ps(results[i], _mm512_set1_ps(bias[strip * kRows + i])),
                                    _mm512_setzero_ps());
             };
             Value* const to = values(dst) + (tile * blocks + strip) * kTileValues;
             for (int64_t pair = 0; pair < kPairs; ++pair)
               _mm512_storeu_si512(to + 2 * kTile * pair, pack(row(2 * pair), row(2 * pair + 1)));
           });
}

VOXGATE_AMX void tile_contract(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(tile_contract);
  const Positions positions(user);
  const int64_t width = dst->src[0]->ne[1];
  const float* const bias = floats(dst->src[1]);
  const float* const carried = floats(dst->src[3]);
  multiply(dst->src[0], dst->src[2], positions.tiles, ith, nth,
           [&](int64_t strip, int64_t tile, const Results& results) VOXGATE_AMX {
             for (int64_t i = 0; i < kRows; ++i) {
               const int64_t channel = strip * kRows + i;
               const int64_t place = tile * panel_floats(width) + channel * kTile;
               const __m512 sum = _mm512_add_ps(results[i], _mm512_set1_ps(bias[channel]));
               _mm512_storeu_ps(floats(dst) + place, _mm512_add_ps(sum, _mm512_loadu_ps(carried + place)));
             }
           });
}

VOXGATE_AMX void tile_scores(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(tile_scores);
  const Positions positions(user);
  const ggml_tensor* const weight = dst->src[0];
  const float* const bias = floats(dst->src[1]);
  const int64_t vocabulary = weight->ne[1];
  const int64_t blocks = weight->ne[0] / kBlock;
  const int64_t strips = (vocabulary + kRows - 1) / kRows;
  auto* const all_states = reinterpret_cast<ScoreState*>(floats(dst) + first_logits_floats(vocabulary));
  Tiles& t = thread_tiles();
  configure();
  for (int64_t part = ith; part < kScoreParts; part += nth) {
    ScoreState* const states = all_states + part * positions.tiles;
    for (int64_t tile = 0; tile < positions.tiles; ++tile)
      for (int lane = 0; lane < kTile; ++lane) {
        states[tile].highest[lane] = -INFINITY;
        states[tile].token[lane] = 0;
        states[tile].sum[lane] = 0;
      }
    for (int64_t strip = strips * part / kScoreParts; strip < strips * (part + 1) / kScoreParts; ++strip) {
      const int64_t first = strip * kRows;
      const int64_t count = std::min<int64_t>(kRows, vocabulary - first);
      lay_out_strip(weight, strip, blocks, t.weights);
      multiply_strip(t, values(dst->src[2]), blocks, 0, positions.tiles,
                     [&](int64_t tile, const Results& results) VOXGATE_AMX {
                       ScoreState& state = states[tile];
                       const __m512 before = _mm512_loadu_ps(state.highest);
                       __m512 highest = before;
                       __m512i token = _mm512_loadu_si512(state.token);
                       __m512 rows[kRows];
                       for (int64_t i = 0; i < count; ++i) {
                         rows[i] = _mm512_add_ps(results[i], _mm512_set1_ps(bias[first + i]));
                         // Of equal ones the first; a number that is none shows in the sum.
                         const __mmask16 higher = _mm512_cmp_ps_mask(rows[i], highest, _CMP_GT_OQ);
                         highest = _mm512_mask_mov_ps(highest, higher, rows[i]);
                         token = _mm512_mask_set1_epi32(token, higher, static_cast<int>(first + i));
                         if (tile == 0)
                           floats(dst)[first + i] = _mm512_cvtss_f32(rows[i]);
                       }
                       const auto exponential = [&](__m512 logit) {
                         return ggml_v_expf(_mm512_sub_ps(logit, highest));
                       };
                       __m512 sum = _mm512_mul_ps(_mm512_loadu_ps(state.sum), exponential(before));
                       for (int64_t i = 0; i < count; ++i)
                         sum = _mm512_add_ps(sum, exponential(rows[i]));
                       _mm512_storeu_ps(state.highest, highest);
                       _mm512_storeu_si512(state.token, token);
                       _mm512_storeu_ps(state.sum, sum);
                     });
    }
  }
  release();
}

} // namespace

const TileOps* tile_ops() {
  static constexpr TileOps ops{tile_norm<true>, tile_norm<false>, tile_hear,     tile_attention,
                               tile_remember,   tile_expand,      tile_contract, tile_scores};
  return may_use_tiles() ? &ops : nullptr;
}

} // namespace voxgate

#else

namespace voxgate {

const TileOps* tile_ops() {
  return nullptr;
}

} // namespace voxgate

#endif
