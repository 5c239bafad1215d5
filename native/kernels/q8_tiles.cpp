// A few columns of 8-bit integers on AMX tiles. Sixteen rows of weights are a tile as they lie in memory, a
// block of 32 integers deep. So the time is that of reading the weights, and of scaling the sums of each
// block, which takes a register for each row whether it holds one column or sixteen.
#include "q8_tiles.h"

#include "amx_tiles.h"
#include "thread_memory.h"

#include <cstring>

#ifdef VOXGATE_HAS_BFLOAT16

#define VOXGATE_AMX_INT8 __attribute__((target("amx-tile,amx-int8")))

namespace voxgate {
namespace {

constexpr int64_t kLeastColumns = 3;   // fewer are as fast without tiles
constexpr int64_t kQuads = kBlock / 4; // groups of four integers, as the instruction takes them

// The activations: a tile for each block, and the scale of each column, which is zero past the last one.
struct Columns {
  alignas(64) int32_t quads[kMaxBlocks][kQuads][kTile];
  alignas(64) float scales[kMaxBlocks][kTile];
};

// The scales of sixteen rows of weights, and the products of two of their blocks.
struct Strip {
  alignas(64) float scales[kTile][kMaxBlocks];
  alignas(64) int32_t products[2][kTile][kTile];
};

struct Work {
  Columns columns;
  Strip strip;
};

void lay_out(Columns& to, const block_q8_0* columns, int64_t ldb, int64_t count, int64_t blocks) {
  for (int64_t block = 0; block < blocks; ++block) {
    _mm512_store_ps(to.scales[block], _mm512_setzero_ps());
    for (int64_t column = 0; column < count; ++column) {
      const block_q8_0& source = columns[column * ldb + block];
      to.scales[block][column] = _cvtsh_ss(source.d);
      for (int64_t quad = 0; quad < kQuads; ++quad)
        std::memcpy(&to.quads[block][quad][column], &source.qs[4 * quad], 4);
    }
  }
}

// Sixteen scales at once: each is read with the two integers behind it.
void read_scales(Strip& to, const block_q8_0* rows, int64_t lda, int64_t count, int64_t blocks) {
  const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i places = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(sizeof(block_q8_0)));
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t block = 0; block < blocks; block += kTile) {
      const auto there = static_cast<__mmask16>((1U << std::min<int64_t>(kTile, blocks - block)) - 1);
      const __m512i read =
          _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), there, places, rows + row * lda + block, 1);
      _mm512_store_ps(&to.scales[row][block], _mm512_cvtph_ps(_mm512_cvtepi32_epi16(read)));
    }
  }
}

// The tiles: 0 and 1 are products, 2 and 3 weights, 4 and 5 columns.
VOXGATE_AMX_INT8 void configure(int64_t rows) {
  TileConfig config;
  for (const size_t tile : {0, 1, 2, 3})
    config.rows[tile] = static_cast<uint8_t>(rows);
  for (const size_t tile : {2, 3})
    config.row_bytes[tile] = kBlock;
  for (const size_t tile : {4, 5})
    config.rows[tile] = kQuads;
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

[[gnu::always_inline]] inline void add(__m512 (&sums)[kTile], const Columns& columns, const Strip& strip,
                                       const int32_t (&products)[kTile][kTile], int64_t block) {
  const __m512 column_scales = _mm512_load_ps(columns.scales[block]);
#pragma GCC unroll 16
  for (int64_t row = 0; row < kTile; ++row) {
    const __m512 scale = _mm512_mul_ps(column_scales, _mm512_set1_ps(strip.scales[row][block]));
    sums[row] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_load_si512(products[row])), scale, sums[row]);
  }
}

VOXGATE_AMX_INT8 void multiply(const Columns& columns, Strip& strip, const block_q8_0* rows, int64_t lda,
                               int64_t blocks, int64_t count, float* c, int64_t ldc, __mmask16 stored) {
  const int64_t stride = lda * static_cast<int64_t>(sizeof(block_q8_0));
  __m512 sums[kTile];
#pragma GCC unroll 16
  for (__m512& sum : sums)
    sum = _mm512_setzero_ps();
  for (int64_t block = 0; block < blocks; block += 2) {
    // The next strip follows this one in memory.
    for (int64_t line = 0; line < 2 * kTile * static_cast<int64_t>(sizeof(block_q8_0)); line += kLine)
      _mm_prefetch(reinterpret_cast<const char*>(rows + kTile * (lda + block)) + line, _MM_HINT_T0);
    _tile_zero(0);
    _tile_loadd(2, rows[block].qs, stride);
    _tile_loadd(4, columns.quads[block], kLine);
    _tile_dpbssd(0, 2, 4);
    _tile_stored(0, strip.products[0], kLine);
    _tile_zero(1);
    _tile_loadd(3, rows[block + 1].qs, stride);
    _tile_loadd(5, columns.quads[block + 1], kLine);
    _tile_dpbssd(1, 3, 5);
    _tile_stored(1, strip.products[1], kLine);
    add(sums, columns, strip, strip.products[0], block);
    add(sums, columns, strip, strip.products[1], block + 1);
  }
  __m512i turned[kTile];
#pragma GCC unroll 16
  for (int64_t row = 0; row < kTile; ++row)
    turned[row] = _mm512_castps_si512(sums[row]);
  transpose(turned);
#pragma GCC unroll 16
  for (int64_t column = 0; column < kTile; ++column)
    if (column < count)
      _mm512_mask_storeu_epi32(c + column * ldc, stored, turned[column]);
}

} // namespace

bool q8_tiles_take(int64_t n, int64_t k) {
  return n >= kLeastColumns && n <= kTile && k >= 2 && k % 2 == 0 && k <= kMaxBlocks && may_use_tiles();
}

bool q8_tiles(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
              const void* b, int64_t ldb, float* c, int64_t ldc) {
  if (!q8_tiles_take(n, k))
    return false;
  VOXGATE_COUNT_CALL(q8_tiles);
  auto& [columns, strip] = thread_block<Work>();
  lay_out(columns, static_cast<const block_q8_0*>(b), ldb, n, k);
  const auto* rows = static_cast<const block_q8_0*>(a);
  const int64_t strips = (m + kTile - 1) / kTile;
  const int64_t first = strips * params->ith / params->nth;
  const int64_t end = strips * (params->ith + 1) / params->nth;
  int64_t configured = 0;
  for (int64_t number = first; number < end; ++number) {
    const int64_t row = number * kTile;
    const int64_t count = std::min(kTile, m - row);
    if (count != configured)
      configure(count);
    configured = count;
    read_scales(strip, rows + row * lda, lda, count, k);
    multiply(columns, strip, rows + row * lda, lda, k, n, c + row, ldc,
             static_cast<__mmask16>((1U << count) - 1));
  }
  release();
  return true;
}

} // namespace voxgate

#else

namespace voxgate {

bool q8_tiles_take(int64_t, int64_t) {
  return false;
}

bool q8_tiles(const ggml_compute_params*, int64_t, int64_t, int64_t, const void*, int64_t, const void*,
              int64_t, float*, int64_t) {
  return false;
}

} // namespace voxgate

#endif
