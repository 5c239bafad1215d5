#pragma once

// What the products on AMX tiles share: amx_gemm.cpp takes those of ggml's graphs, tile_ops.cpp computes a
// whole encoder.
//
// A tile of weights is 16 rows of one block each: 32 values as bfloat16 fill a row of 64 bytes, in the order
// in which they lie, so weights need no shuffling. Activations are laid out once for all rows, in pairs as
// the instruction wants its second operand ("columns" below). The result has a row for each row of weights.
#if defined(__x86_64__) && defined(__linux__) && defined(__AVX512VNNI__) && defined(__AVX512BW__) &&         \
    defined(__F16C__)

#define VOXGATE_HAS_BFLOAT16

#include "cpu_level.h"
#include "kernel_calls.h"
#include "transpose.h"

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"
#include "ggml-cpu-impl.h"

#include <immintrin.h>

#include <algorithm>
#include <array>

#define VOXGATE_AMX __attribute__((target("amx-tile,amx-bf16,avx512bf16")))

namespace voxgate {

constexpr int64_t kBlock = QK8_0; // weights that share a scale, and the depth of a tile
constexpr int64_t kTile = 16;     // rows of weights, and columns of activations, of a tile
constexpr int64_t kTileValues = kTile * kBlock;
constexpr int64_t kRows = 2 * kTile; // of weights, in one job
constexpr int64_t kMaxBlocks = 256;  // 8192 values deep
constexpr int64_t kPanelValues =
    int64_t{640} * 1024; // activations that stay in a core's second cache, beside the weights

using Value = uint16_t; // a bfloat16

// The tiles of columns that are taken together, of `tiles` in all: an even number, so that panels of about
// the same size stay in a core's second cache.
inline int64_t panel_tiles(int64_t tiles, int64_t blocks) {
  const int64_t widest = std::max<int64_t>(2, kPanelValues / (blocks * kTileValues) / 2 * 2);
  const int64_t panels = (tiles + widest - 1) / widest;
  return ((tiles + panels - 1) / panels + 1) / 2 * 2;
}

// A row of weights has an odd number of cache lines, or the rows of a tile would lie in the same sets of the
// cache.
constexpr int64_t kLine = 64;
inline int64_t row_values(int64_t blocks) {
  return (blocks | 1) * kBlock;
}

// The working memory of a thread.
struct Tiles {
  alignas(64) Value weights[kRows * (kMaxBlocks + 1) * kBlock];
  alignas(64) float sums[4][kTile][kTile];
};
// Returns the working memory of the calling thread.
Tiles& thread_tiles();

// A virtual machine may advertise AMX while its kernel does not let a process use it; the kernel is asked.
Bfloat16 bfloat16_products();
void limit_bfloat16(Bfloat16 most);
inline bool may_use_tiles() {
  return bfloat16_products() == Bfloat16::tiles;
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// gcc 12 leaves out the stores to a variable of which only the instruction knows that it reads all.
inline const volatile TileConfig kConfig;

VOXGATE_AMX inline void configure() {
  _tile_loadconfig(const_cast<const TileConfig*>(&kConfig));
}

// Tiles that hold something are saved at each switch of threads.
VOXGATE_AMX inline void release() {
  _tile_release();
}

// The rows of a strip come to lie side by side in `to`.
VOXGATE_AMX inline void lay_out_weights(const block_q8_0* rows, int64_t lda, int64_t count, int64_t blocks,
                                        Value* to) {
  constexpr int64_t kAhead = 2048; // bytes: the processor's prefetching stops at the end of each page
  for (int64_t row = 0; row < kRows; ++row) {
    // Rows past the last repeat it; their outputs are not stored.
    const block_q8_0* source = rows + std::min(row, count - 1) * lda;
    Value* out = to + row * row_values(blocks);
    for (int64_t block = 0; block < blocks; ++block, ++source, out += kBlock) {
      _mm_prefetch(reinterpret_cast<const char*>(source) + kAhead, _MM_HINT_T0);
      const __m512 scale = _mm512_set1_ps(_cvtsh_ss(source->d));
      const auto* values = reinterpret_cast<const __m128i*>(source->qs);
      const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(values)));
      const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(values + 1)));
      _mm512_store_si512(out,
                         (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(high, scale), _mm512_mul_ps(low, scale)));
    }
  }
}

// One block of up to 16 columns; columns past the last are zeros.
VOXGATE_AMX inline void lay_out_columns(const float* from, int64_t ldb, int64_t count, Value* to) {
  __m512i rows[kTile];
  for (int64_t i = 0; i < kTile; ++i) {
    if (i >= count) {
      rows[i] = _mm512_setzero_si512();
      continue;
    }
    const float* column = from + i * ldb;
    rows[i] = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(column + 16), _mm512_loadu_ps(column));
  }
  transpose(rows);
  for (int64_t i = 0; i < kTile; ++i)
    _mm512_store_si512(to + 32 * i, rows[i]);
}

// Two tiles of weights times one or two of columns, over `blocks` of them. Tiles of weights lie `step` values
// apart and their rows `stride` bytes; without a second tile of columns `c1` is null. The results are rows
// of 16 floats: of both tiles of weights for the first columns, then for the second.
VOXGATE_AMX inline void multiply_tiles(const Value* w0, const Value* w1, int64_t step, int64_t stride,
                                       const Value* c0, const Value* c1, int64_t blocks,
                                       const std::array<float*, 4>& results) {
  __asm__ volatile("" ::: "memory"); // gcc 12 does not know that loading a tile reads memory
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t block = 0; block < blocks; ++block) {
    _tile_loadd(4, w0 + block * step, stride);
    _tile_loadd(6, c0 + block * kTileValues, kLine);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, w1 + block * step, stride);
    _tile_dpbf16ps(1, 5, 6);
    if (c1 == nullptr)
      continue;
    _tile_loadd(7, c1 + block * kTileValues, kLine);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, results[0], kLine);
  _tile_stored(1, results[1], kLine);
  if (c1 == nullptr)
    return;
  _tile_stored(2, results[2], kLine);
  _tile_stored(3, results[3], kLine);
}

} // namespace voxgate

#endif
