// Attention of Whisper's encoder in bfloat16: unmasked_attention.h says what is computed.
#include "bfloat16_vectors.h"
#include "tile_kernels.h"
#include "unmasked_head.h"

#ifdef VOXGATE_HAS_BFLOAT16

namespace voxgate {
namespace {

constexpr int64_t kBlocks = kDepth / kBlock;
constexpr int64_t kChannelTiles = kDepth / kTile;

// Keys are the rows of tiles, as they lie in memory.
VOXGATE_AMX void lay_out_keys(const UnmaskedHead& head, int64_t count, Value* to) {
  for (int64_t key = 0; key < count; ++key)
    for (int64_t block = 0; block < kBlocks; ++block) {
      __m512bh values = (__m512bh)_mm512_setzero_si512();
      if (key < head.keys)
        values = _mm512_cvtne2ps_pbh(from_halves(head.key(key) + block * kBlock + 16),
                                     from_halves(head.key(key) + block * kBlock));
      _mm512_storeu_si512(to + (key / kTile * kBlocks + block) * kTileValues + key % kTile * kBlock,
                          (__m512i)values);
    }
}

// Channels of values are the rows of tiles, so that pairs of keys are turned.
VOXGATE_AMX void lay_out_values(const UnmaskedHead& head, int64_t pairs, Value* to) {
  const auto channels = [&](int64_t key, int64_t first) {
    return key < head.keys ? from_halves(head.value(key) + first) : _mm512_setzero_ps();
  };
  for (int64_t tile = 0; tile < kChannelTiles; ++tile)
    for (int64_t pair = 0; pair < pairs; ++pair) {
      __m512i rows[kTile];
      for (int64_t i = 0; i < kTile; ++i)
        rows[i] = pack(channels(pair * kBlock + 2 * i, tile * kTile),
                       channels(pair * kBlock + 2 * i + 1, tile * kTile));
      transpose(rows);
      for (int64_t i = 0; i < kTile; ++i)
        _mm512_storeu_si512(to + (tile * pairs + pair) * kTileValues + i * kBlock, rows[i]);
    }
}

// Scores have a row for each key, and are scaled later.
VOXGATE_AMX void add_offsets(const UnmaskedHead& head, float* scores) {
  for (int64_t key = 0; key < head.keys; ++key) {
    const __m512 offset = _mm512_set1_ps(head.offsets[key] / head.scale);
    _mm512_storeu_ps(scores + key * kTile, _mm512_add_ps(_mm512_loadu_ps(scores + key * kTile), offset));
  }
}

VOXGATE_AMX void store(const UnmaskedHead& head, int64_t query, int64_t tile, const float* sums,
                       __m512 factors) {
  __m512i rows[kTile];
  for (int64_t i = 0; i < kTile; ++i)
    rows[i] = (__m512i)_mm512_mul_ps(_mm512_loadu_ps(sums + i * kTile), factors);
  transpose(rows);
  for (int64_t i = 0; i < std::min(kTile, head.end - query); ++i)
    _mm512_storeu_si512(head.result(query + i) + tile * kTile, rows[i]);
}

struct OnTiles {
  VOXGATE_AMX static void begin() { configure(); }
  VOXGATE_AMX static void end() { release(); }
  VOXGATE_AMX static void multiply(const Value* w0, const Value* w1, const Value* c0, const Value* c1,
                                   int64_t blocks, const std::array<float*, 4>& results) {
    multiply_tiles(w0, w1, kTileValues, kLine, c0, c1, blocks, results);
  }
};

struct OnVectors {
  static void begin() {}
  static void end() {}
  VOXGATE_BFLOAT16 static void multiply(const Value* w0, const Value* w1, const Value* c0, const Value* c1,
                                        int64_t blocks, const std::array<float*, 4>& results) {
    multiply_vectors(w0, w1, c0, c1, blocks, results);
  }
};

// Attends with results that have a row for each key and each channel, and a column for each query.
template <typename On> VOXGATE_AMX bool attend_in_bfloat16(const UnmaskedHead& head, ThreadMemory& memory) {
  const int64_t pairs = (head.keys + kBlock - 1) / kBlock; // of tiles of keys
  const int64_t head_values = pairs * 2 * kBlocks * kTileValues;
  const int64_t score_floats = pairs * kBlock * kTile;
  auto* const keys = static_cast<Value*>(
      memory.of(static_cast<size_t>(2 * head_values + 2 * kBlocks * kTileValues) * sizeof(Value) +
                static_cast<size_t>(2 * score_floats) * sizeof(float)));
  if (keys == nullptr)
    return false;
  Value* const values = keys + head_values;
  Value* const queries = values + head_values;
  float* const scores = reinterpret_cast<float*>(queries + 2 * kBlocks * kTileValues);
  lay_out_keys(head, pairs * kBlock, keys);
  lay_out_values(head, pairs, values);
  const auto stride = static_cast<int64_t>(head.dst->src[0]->nb[1] / sizeof(float));
  Tiles& t = thread_tiles();
  On::begin();
  for (int64_t query = head.first; query < head.end; query += 2 * kTile) {
    const int64_t tiles = head.end - query > kTile ? 2 : 1;
    for (int64_t i = 0; i < tiles; ++i)
      for (int64_t block = 0; block < kBlocks; ++block)
        lay_out_columns(head.query(query + i * kTile) + block * kBlock, stride, head.end - query - i * kTile,
                        queries + (i * kBlocks + block) * kTileValues);
    const Value* const more = tiles == 2 ? queries + kBlocks * kTileValues : nullptr;
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const Value* const rows = keys + pair * 2 * kBlocks * kTileValues;
      float* const to = scores + pair * kBlock * kTile;
      On::multiply(rows, rows + kBlocks * kTileValues, queries, more, kBlocks,
                   {to, to + kTile * kTile, to + score_floats, to + score_floats + kTile * kTile});
    }
    // Probabilities take half of the room of the scores they are made of, and begin where those do.
    __m512 factors[2] = {};
    Value* weights[2] = {};
    for (int64_t i = 0; i < tiles; ++i) {
      if (head.offsets != nullptr)
        add_offsets(head, scores + i * score_floats);
      weights[i] = reinterpret_cast<Value*>(scores + i * score_floats);
      factors[i] = _mm512_div_ps(_mm512_set1_ps(1), soften(scores + i * score_floats, head.keys,
                                                           pairs * kTile, head.scale, weights[i]));
    }
    for (int64_t tile = 0; tile < kChannelTiles; tile += 2) {
      const Value* const rows = values + tile * pairs * kTileValues;
      On::multiply(rows, rows + pairs * kTileValues, weights[0], weights[1], pairs,
                   {t.sums[0][0], t.sums[1][0], t.sums[2][0], t.sums[3][0]});
      for (int64_t i = 0; i < tiles; ++i)
        for (int64_t half = 0; half < 2; ++half)
          store(head, query + i * kTile, tile + half, t.sums[2 * i + half][0], factors[i]);
    }
  }
  On::end();
  return true;
}

} // namespace

bool attend_on_tiles(const UnmaskedHead& head, ThreadMemory& memory) {
  return attend_in_bfloat16<OnTiles>(head, memory);
}

bool attend_on_vectors(const UnmaskedHead& head, ThreadMemory& memory) {
  return attend_in_bfloat16<OnVectors>(head, memory);
}

} // namespace voxgate

#endif
