// Products on AMX tiles: amx_gemm.h says what is computed. The result has a row for each row of weights, and
// is turned when it is stored.
#include "amx_gemm.h"

#include "amx_tiles.h"
#include "thread_memory.h"

#ifdef VOXGATE_HAS_BFLOAT16

namespace voxgate {
namespace {

constexpr int64_t kFewColumns = 12; // fewer are as fast without tiles, whose columns would be mostly empty

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
void multiply(Tiles& tiles, const Value* columns, int64_t blocks, int64_t count, int64_t rows, float* c,
              int64_t ldc) {
  const bool two = count > kTile;
  multiply_tiles(tiles.weights, tiles.weights + kTile * row_values(blocks), kBlock,
                 row_values(blocks) * static_cast<int64_t>(sizeof(Value)), columns,
                 two ? columns + blocks * kTileValues : nullptr, blocks,
                 {tiles.sums[0][0], tiles.sums[1][0], tiles.sums[2][0], tiles.sums[3][0]});
  store(tiles.sums[0], count, c, ldc, first_lanes(rows));
  store(tiles.sums[1], count, c + kTile, ldc, first_lanes(rows - kTile));
  if (two) {
    store(tiles.sums[2], count - kTile, c + kTile * ldc, ldc, first_lanes(rows));
    store(tiles.sums[3], count - kTile, c + kTile * ldc + kTile, ldc, first_lanes(rows - kTile));
  }
}

} // namespace

Tiles& thread_tiles() {
  return thread_block<Tiles>();
}

bool amx_gemm(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
              const float* b, int64_t ldb, float* c, int64_t ldc) {
  if (m < kRows || n < kFewColumns || k < 1 || k > kMaxBlocks || !may_use_tiles())
    return false;
  const int64_t tiles = (n + kTile - 1) / kTile;
  const int64_t panel = panel_tiles(tiles, k);
  static thread_local ThreadMemory memory; // of the thread that began the graph; the others help to fill it
  // The pointer to the columns is passed on in ggml's working memory, which has room for B in eight bits.
  auto** const shared = reinterpret_cast<Value**>(params->wdata);
  if (params->ith == 0)
    *shared = static_cast<Value*>(memory.of(static_cast<size_t>(panel * k * kTileValues) * sizeof(Value)));
  ggml_barrier(params->threadpool);
  Value* const columns = *shared;
  if (columns == nullptr) {
    ggml_barrier(params->threadpool); // before the working memory is used otherwise
    return false;
  }
  VOXGATE_COUNT_CALL(amx_gemm);
  const auto* rows = static_cast<const block_q8_0*>(a);
  const int64_t strips = (m + kRows - 1) / kRows;
  Tiles& t = thread_tiles();
  configure();
  for (int64_t first_tile = 0; first_tile < tiles; first_tile += panel) {
    const int64_t end_tile = std::min(tiles, first_tile + panel);
    if (params->ith == 0)
      ggml_threadpool_chunk_set(params->threadpool, params->nth);
    for (int64_t tile = first_tile + params->ith; tile < end_tile; tile += params->nth)
      for (int64_t block = 0; block < k; ++block)
        lay_out_columns(b + tile * kTile * ldb + block * kBlock, ldb, n - tile * kTile,
                        columns + ((tile - first_tile) * k + block) * kTileValues);
    ggml_barrier(params->threadpool);
    for (int64_t strip = params->ith; strip < strips;
         strip = ggml_threadpool_chunk_add(params->threadpool, 1)) {
      const int64_t first_row = strip * kRows;
      const int64_t count = std::min<int64_t>(kRows, m - first_row);
      lay_out_weights(rows + first_row * lda, lda, count, k, t.weights);
      for (int64_t tile = first_tile; tile < end_tile; tile += 2)
        multiply(t, columns + (tile - first_tile) * k * kTileValues, k, std::min(2 * kTile, n - tile * kTile),
                 count, c + tile * kTile * ldc + first_row, ldc);
    }
    ggml_barrier(params->threadpool); // the columns of the next panel take the place of these
  }
  release();
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
