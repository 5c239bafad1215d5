// Products on AMX tiles: amx_gemm.h says what is computed.
//
// A tile of weights is 16 rows of one block each: 32 values as bfloat16 fill a row of 64 bytes, in the order
// in which they lie, so weights need no shuffling. Activations are laid out once for all rows, in pairs as
// the instruction wants its second operand. The result has a row for each row of weights, and is turned when
// it is stored.
#include "amx_gemm.h"

#include "taken.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__AVX512VNNI__) && defined(__AVX512BW__) &&         \
    defined(__F16C__)

#define GGML_COMMON_DECL_CPP
#include "ggml-common.h"
#include "ggml-cpu-impl.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#define VOXGATE_AMX __attribute__((target("amx-tile,amx-bf16,avx512bf16")))

namespace voxgate {
namespace {

constexpr int kBlock = QK8_0; // weights that share a scale, and the depth of a tile
constexpr int kTile = 16;     // rows of weights, and columns of activations, of a tile
constexpr int kTileValues = kTile * kBlock;
constexpr int kRows = 2 * kTile;    // of weights, in one job
constexpr int64_t kMaxBlocks = 256; // 8192 values deep
constexpr int64_t kFewColumns = 12; // fewer are as fast without tiles, whose columns would be mostly empty
constexpr int64_t kPanelValues =
    int64_t{640} * 1024; // activations that stay in a core's second cache, beside the weights

using Value = uint16_t; // a bfloat16

// A row of weights has an odd number of cache lines, or the rows of a tile would lie in the same sets of the
// cache.
constexpr int64_t kLine = 64;
int64_t row_values(int64_t blocks) {
  return (blocks | 1) * kBlock;
}

struct Tiles {
  alignas(64) Value weights[kRows * (kMaxBlocks + 1) * kBlock];
  alignas(64) float sums[4][kTile][kTile];
};
thread_local Tiles t_tiles;

// Of the thread that began the graph; the others take part in filling it.
thread_local std::unique_ptr<Value[], decltype(&std::free)> t_columns{nullptr, std::free};
thread_local size_t t_capacity = 0;

Value* columns_for(size_t count) {
  if (t_capacity < count) {
    t_columns.reset();
    t_capacity = 0;
    t_columns.reset(static_cast<Value*>(std::aligned_alloc(64, count * sizeof(Value))));
    t_capacity = t_columns ? count : 0;
  }
  return t_columns.get();
}

// A virtual machine may advertise AMX while its kernel does not let a process use it; the kernel is asked.
bool may_use_tiles() {
#ifdef VOXGATE_TESTS
  if (kernel_calls.without_amx)
    return false;
#endif
  static const bool allowed = [] {
    constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24, kVectorBf16 = 1U << 5;
    constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kBf16) == 0 || (d & kTiles) == 0)
      return false;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & kVectorBf16) == 0)
      return false;
    return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  }();
  return allowed;
}

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
// gcc 12 leaves out the stores to a variable of which only the instruction knows that it reads all.
const volatile TileConfig kConfig;

VOXGATE_AMX void configure() {
  _tile_loadconfig(const_cast<const TileConfig*>(&kConfig));
}

// Tiles that hold something are saved at each switch of threads.
VOXGATE_AMX void release() {
  _tile_release();
}

// Turns 16 rows of 16 into columns. Inlined, for else they would all go through memory.
[[gnu::always_inline]] inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
  }
}

// One block of up to 16 columns; columns past the last are zeros.
VOXGATE_AMX void lay_out_columns(const float* from, int64_t ldb, int64_t count, Value* to) {
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

VOXGATE_AMX void lay_out_weights(const block_q8_0* rows, int64_t lda, int64_t count, int64_t blocks,
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

__mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<int64_t>(count, 0, kTile)) - 1);
}

void store(const float (&sums)[kTile][kTile], int64_t columns, float* c, int64_t ldc, __mmask16 stored) {
  __m512i rows[kTile];
  for (int i = 0; i < kTile; ++i)
    rows[i] = _mm512_load_si512(sums[i]);
  transpose(rows);
  for (int64_t column = 0; column < std::min<int64_t>(columns, kTile); ++column)
    _mm512_mask_storeu_epi32(c + column * ldc, stored, rows[column]);
}

// The strip of weights times up to 32 columns.
VOXGATE_AMX void multiply(Tiles& tiles, const Value* columns, int64_t blocks, int64_t count, int64_t rows,
                          float* c, int64_t ldc) {
  const int64_t stride = row_values(blocks) * static_cast<int64_t>(sizeof(Value));
  const Value* weights = tiles.weights;
  const Value* more_weights = weights + kTile * row_values(blocks);
  const bool two = count > kTile;
  const Value* second = columns + blocks * kTileValues;
  __asm__ volatile("" ::: "memory"); // gcc 12 does not know that loading a tile reads memory
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t block = 0; block < blocks; ++block) {
    _tile_loadd(4, weights + block * kBlock, stride);
    _tile_loadd(6, columns + block * kTileValues, kLine);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, more_weights + block * kBlock, stride);
    _tile_dpbf16ps(1, 5, 6);
    if (!two)
      continue;
    _tile_loadd(7, second + block * kTileValues, kLine);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, tiles.sums[0], kLine);
  _tile_stored(1, tiles.sums[1], kLine);
  store(tiles.sums[0], count, c, ldc, first_lanes(rows));
  store(tiles.sums[1], count, c + kTile, ldc, first_lanes(rows - kTile));
  if (two) {
    _tile_stored(2, tiles.sums[2], kLine);
    _tile_stored(3, tiles.sums[3], kLine);
    store(tiles.sums[2], count - kTile, c + kTile * ldc, ldc, first_lanes(rows));
    store(tiles.sums[3], count - kTile, c + kTile * ldc + kTile, ldc, first_lanes(rows - kTile));
  }
}

} // namespace

bool amx_gemm(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
              const float* b, int64_t ldb, float* c, int64_t ldc) {
  if (m < kRows || n < kFewColumns || k < 1 || k > kMaxBlocks || !may_use_tiles())
    return false;
  const int64_t tiles = (n + kTile - 1) / kTile;
  // The pointer to the columns is passed on in ggml's working memory, which has room for B in eight bits.
  auto** const shared = reinterpret_cast<Value**>(params->wdata);
  if (params->ith == 0) {
    *shared = columns_for(static_cast<size_t>(tiles * k * kTileValues));
    ggml_threadpool_chunk_set(params->threadpool, params->nth);
  }
  ggml_barrier(params->threadpool);
  Value* const columns = *shared;
  if (columns == nullptr) {
    ggml_barrier(params->threadpool); // before the working memory is used otherwise
    return false;
  }
  VOXGATE_TAKEN(amx_gemm);
  for (int64_t tile = params->ith; tile < tiles; tile += params->nth)
    for (int64_t block = 0; block < k; ++block)
      lay_out_columns(b + tile * kTile * ldb + block * kBlock, ldb, n - tile * kTile,
                      columns + (tile * k + block) * kTileValues);
  ggml_barrier(params->threadpool);

  const auto* rows = static_cast<const block_q8_0*>(a);
  const int64_t strips = (m + kRows - 1) / kRows;
  const int64_t widest = std::max<int64_t>(2, kPanelValues / (k * kTileValues) / 2 * 2); // tiles
  const int64_t panels = (tiles + widest - 1) / widest;
  const int64_t panel = ((tiles + panels - 1) / panels + 1) / 2 * 2;
  Tiles& t = t_tiles;
  configure();
  for (int64_t job = params->ith; job < strips * panels;
       job = ggml_threadpool_chunk_add(params->threadpool, 1)) {
    const int64_t first_row = job % strips * kRows;
    const int64_t count = std::min<int64_t>(kRows, m - first_row);
    lay_out_weights(rows + first_row * lda, lda, count, k, t.weights);
    const int64_t first_tile = job / strips * panel;
    for (int64_t tile = first_tile; tile < std::min(tiles, first_tile + panel); tile += 2)
      multiply(t, columns + tile * k * kTileValues, k, std::min(int64_t{2} * kTile, n - tile * kTile), count,
               c + tile * kTile * ldc + first_row, ldc);
  }
  release();
  ggml_barrier(params->threadpool);
  return true;
}

} // namespace voxgate

#else

namespace voxgate {

bool amx_gemm(const ggml_compute_params*, int64_t, int64_t, int64_t, const void*, int64_t, const float*,
              int64_t, float*, int64_t) {
  return false;
}

} // namespace voxgate

#endif
