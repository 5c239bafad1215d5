#include "q8_gemm.h"

#include "kernel_calls.h"
#include "q8_few.h"
#include "q8_steps.h"
#include "thread_memory.h"

#ifdef VOXGATE_HAS_VECTORS

#include "ggml-cpu-impl.h"

#include <algorithm>
#include <array>

// ggml's own product (tinyBLAS) computes one output at a time from two blocks: four instructions around each
// multiplication of 32. Here a strip of weights is laid out so that the lanes of a register belong to as many
// outputs, each lane with consecutive integers of its row (q8_steps.h). One step then multiplies and adds a
// register of them, and scales are applied once a block.
namespace voxgate {
namespace {

constexpr int64_t kVectors = 2; // registers of rows
constexpr int64_t kRows = kLanes * kVectors;
constexpr int64_t kColumns = 6; // 2 x 6 integer and 2 x 6 float accumulators have room in 32 registers
constexpr int64_t kPrepared = 1 << (kQuads ? 15 : 14); // blocks of activations a thread prepares at once
constexpr int64_t kBlockSquares = kBlock / 8;          // the steps of two rows and two columns at once

static_assert(kPrepared >= kMaxBlocks * kColumns && kMaxBlocks % kPieceBlocks == 0);

// A strip of weights: for each step the integers of each row, or for each square those of each pair of rows,
// and for each block each row's scale.
struct Strip {
#ifdef VOXGATE_HAS_SQUARES
  alignas(64) int8_t squares[kMaxBlocks][kBlockSquares][kRows / 2][16];
#else
  alignas(64) Step steps[kMaxBlocks * kBlockSteps][kRows];
#endif
  alignas(64) float scales[kMaxBlocks][kRows];
};

struct Prepared {
  float scale;
  int32_t offset; // offset_of()
};

// What a thread works with.
struct Work {
  Strip strip;
  std::array<Prepared, kPrepared> prepared;
  std::array<StepSource, kQuads ? 1 : kPrepared> sources;
};

// The integers of as many rows as there are lanes, of the blocks from `block` to `next`.
template <typename Row>
void lay_out_steps(Strip& to, int64_t first, int64_t block, [[maybe_unused]] int64_t next, const Row& row) {
#ifdef VOXGATE_HAS_SQUARES
  for (int64_t square = 0; square < kBlockSquares; ++square)
    for (int64_t i = 0; i < kLanes; i += 2)
      store(static_cast<void*>(to.squares[block][square][(first + i) / 2]),
            two_rows(row(i)[block].qs + 8 * square, row(i + 1)[block].qs + 8 * square));
#else
  for (int64_t at = 0; at < kPieceRegisters; ++at) { // squares of steps, which are turned at once
    Integers steps[kLanes];
    for (int64_t i = 0; i < kLanes; ++i)
      steps[i] = load_weights(row(i)[block], row(i)[next], at);
    transpose(steps);
    for (int64_t i = 0; i < kLanes; ++i)
      store(static_cast<void*>(to.steps[block * kBlockSteps + at * kLanes + i][first]), steps[i]);
  }
#endif
}

void lay_out(Strip& to, const block_q8_0* rows, int64_t lda, int64_t count, int64_t blocks) {
  for (int64_t first = 0; first < kRows; first += kLanes) {
    // Rows past the last repeat it; their outputs are not stored.
    const auto row = [&](int64_t i) { return rows + std::min(first + i, count - 1) * lda; };
    for (int64_t block = 0; block < blocks; block += kPieceBlocks) {
      const int64_t next = std::min(block + kPieceBlocks, blocks) - 1;
      lay_out_steps(to, first, block, next, row);
      for (int64_t i = block; i <= next; ++i) {
        alignas(64) ggml_half scales[kLanes];
        for (int64_t lane = 0; lane < kLanes; ++lane)
          scales[lane] = row(lane)[i].d;
        store(&to.scales[i][first], from_halves(scales));
      }
    }
  }
}

void prepare(Work& work, const block_q8_0* columns, int64_t ldb, int64_t count, int64_t blocks) {
  size_t at = 0;
  for (int64_t column = 0; column < count; ++column) {
    for (int64_t block = 0; block < blocks; ++block, ++at) {
      const block_q8_0& source = columns[column * ldb + block];
      work.prepared[at] = {to_float(source.d), offset_of(source)};
      if constexpr (!kQuads)
        std::copy_n(source.qs, kBlock, work.sources[at].qs);
    }
  }
}

// Asks for one of the equal parts of a strip of weights.
void fetch(const block_q8_0* strip, int64_t lda, int64_t part, int64_t parts) {
  constexpr int64_t kLine = 64;
  const int64_t lines = (kRows * lda * int64_t{sizeof(block_q8_0)} / parts + kLine - 1) / kLine;
  const char* from = reinterpret_cast<const char*>(strip) + part * lines * kLine;
  for (int64_t line = 0; line < lines; ++line, from += kLine)
    __builtin_prefetch(from, 0, 2);
}

// The products of small constants below stay under 100.
// NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result)

void store_rows(float* to, Floats values, int64_t first, int64_t rows) {
  if (rows >= first + kLanes)
    store(to + first, values);
  else if (rows > first)
    store_first(to + first, values, rows - first);
}

#ifdef VOXGATE_HAS_SQUARES

// A strip of weights times `kCount` columns, by pairs of rows and pairs of columns. The lanes of a register
// are the products of the first row with both columns, and of the second row.
template <int kCount>
void multiply(const Strip& strip, const StepSource* columns, int64_t ldb, const Prepared* prepared,
              int64_t blocks, float* c, int64_t ldc, int64_t rows) {
  constexpr int kPairs = (kCount + 1) / 2;
  constexpr int kRowPairs = kRows / 2;
  const auto second = [](int pair) { return std::min(2 * pair + 1, kCount - 1); }; // column of a pair
  Floats sums[kRowPairs][kPairs] = {};
  for (int64_t block = 0; block < blocks; ++block) {
    Integers dots[kRowPairs][kPairs] = {};
    for (int64_t square = 0; square < kBlockSquares; ++square) {
      Integers values[kPairs];
      for (int pair = 0; pair < kPairs; ++pair)
        values[pair] = two_rows(columns[2 * pair * ldb + block].qs + 8 * square,
                                columns[second(pair) * ldb + block].qs + 8 * square);
      for (int row = 0; row < kRowPairs; ++row) {
        const Integers weights = load(static_cast<const void*>(strip.squares[block][square][row]));
        for (int pair = 0; pair < kPairs; ++pair)
          dots[row][pair] = add_squares(dots[row][pair], weights, values[pair]);
      }
    }
    for (int row = 0; row < kRowPairs; ++row) {
      const float32x2_t both = vld1_f32(&strip.scales[block][2 * row]);
      const Floats scales = vcombine_f32(vdup_lane_f32(both, 0), vdup_lane_f32(both, 1));
      for (int pair = 0; pair < kPairs; ++pair) {
        const float32x2_t of_columns{prepared[2 * pair * blocks + block].scale,
                                     prepared[second(pair) * blocks + block].scale};
        sums[row][pair] = multiply_add(to_floats(dots[row][pair]),
                                       scales * vcombine_f32(of_columns, of_columns), sums[row][pair]);
      }
    }
  }
  for (int row = 0; row < kRowPairs; row += 2)
    for (int pair = 0; pair < kPairs; ++pair) {
      float* const first = c + 2 * pair * ldc;
      store_rows(first, vuzp1q_f32(sums[row][pair], sums[row + 1][pair]), 2 * row, rows);
      if (2 * pair + 1 < kCount)
        store_rows(first + ldc, vuzp2q_f32(sums[row][pair], sums[row + 1][pair]), 2 * row, rows);
    }
}

#else

#ifdef VOXGATE_NEON
constexpr bool kSumsWait = true;
#define VOXGATE_IN_REGISTER(value) "+w"(value)
#else
constexpr bool kSumsWait = kRegisters < 32;
#define VOXGATE_IN_REGISTER(value) "+x"(value)
#endif

// A strip of weights times `kCount` columns. The integer accumulators must stay in registers, and the float
// ones wait in memory for the end of each block (kSumsWait). GCC 12 keeps the wrong ones in memory by itself,
// which takes 1.6 times as long on AVX2, and sets the floats to zero by an instruction that takes longer than
// to store them. The empty statements of assembly tell it which belong where.
template <int kCount>
void multiply(const Strip& strip, const StepSource* columns, int64_t ldb, const Prepared* prepared,
              int64_t blocks, float* c, int64_t ldc, int64_t rows) {
  alignas(64) Floats sums[kVectors][kCount];
  for (int column = 0; column < kCount; ++column)
    for (int vector = 0; vector < kVectors; ++vector) {
      sums[vector][column] = spread(0.0F);
      if constexpr (kSumsWait)
        __asm__ volatile("" : "+m"(sums[vector][column]));
    }

  for (int64_t block = 0; block < blocks; ++block) {
    Integers dots[kVectors][kCount];
    for (int column = 0; column < kCount; ++column)
      for (int vector = 0; vector < kVectors; ++vector)
        dots[vector][column] = kRaised != 0 ? spread(prepared[column * blocks + block].offset) : spread(0);
    for (int64_t step = 0; step < kBlockSteps; ++step) {
      Integers weights[kVectors];
      for (int vector = 0; vector < kVectors; ++vector)
        weights[vector] =
            load(static_cast<const void*>(strip.steps[block * kBlockSteps + step][vector * kLanes]));
      for (int column = 0; column < kCount; ++column) {
        const Integers values = spread_step(columns[column * ldb + block], step);
        for (int vector = 0; vector < kVectors; ++vector) {
          dots[vector][column] = add_step(dots[vector][column], weights[vector], values);
          if constexpr (kSumsWait)
            __asm__ volatile("" : VOXGATE_IN_REGISTER(dots[vector][column]));
        }
      }
    }
    for (int vector = 0; vector < kVectors; ++vector) {
      const Floats scales = load(&strip.scales[block][vector * kLanes]);
      for (int column = 0; column < kCount; ++column) {
        const Floats scale = scales * spread(prepared[column * blocks + block].scale);
        sums[vector][column] = multiply_add(to_floats(dots[vector][column]), scale, sums[vector][column]);
      }
    }
    if constexpr (kSumsWait)
      __asm__ volatile("" : "+m"(sums));
  }

  for (int column = 0; column < kCount; ++column)
    for (int vector = 0; vector < kVectors; ++vector)
      store_rows(c + column * ldc, sums[vector][column], vector * kLanes, rows);
}

#endif

using Multiply = decltype(&multiply<kColumns>);
constexpr std::array<Multiply, 7> kMultiply{nullptr,     multiply<1>, multiply<2>, multiply<3>,
                                            multiply<4>, multiply<5>, multiply<6>};
static_assert(kColumns < kMultiply.size());
// NOLINTEND(bugprone-implicit-widening-of-multiplication-result)

} // namespace

bool q8_gemm(const ggml_compute_params* params, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda,
             const void* b, int64_t ldb, float* c, int64_t ldc) {
  if (m < kRows || n < 1 || k < 1 || k > kMaxBlocks)
    return false;
  const auto* rows = static_cast<const block_q8_0*>(a);
  const auto* columns = static_cast<const block_q8_0*>(b);
  if (n < kFewColumns) { // of a shape that few_products.cpp leaves
    if (!is_few(m, n, k))
      return false;
    VOXGATE_COUNT_CALL(q8_gemm_few);
    const int64_t first = m * params->ith / params->nth;
    const int64_t end = m * (params->ith + 1) / params->nth;
    FewColumns(columns, ldb, n, k).multiply(rows + first * lda, lda, end - first, c + first, ldc);
    return true;
  }
  VOXGATE_COUNT_CALL(q8_gemm);
  const int64_t strips = (m + kRows - 1) / kRows;
  const int64_t panel = std::min(n, kPrepared / k / kColumns * kColumns); // columns prepared at once
  const int64_t panels = (n + panel - 1) / panel;

  Work& work = thread_block<Work>();
  // ggml has set the count of jobs before the first product of a node, and the threads have met since then.
  // The columns of that product begin its working memory.
  if (b != params->wdata) {
    ggml_barrier(params->threadpool);
    if (params->ith == 0)
      ggml_threadpool_chunk_set(params->threadpool, params->nth);
    ggml_barrier(params->threadpool);
  }
  const int64_t jobs = strips * panels;
  int64_t prepared = -1;
  for (int64_t job = params->ith, next = job; job < jobs; job = next) {
    next = ggml_threadpool_chunk_add(params->threadpool, 1);
    const int64_t first_column = job / strips * panel;
    const int64_t last_column = std::min(n, first_column + panel);
    if (prepared != first_column)
      prepare(work, columns + first_column * ldb, ldb, last_column - first_column, k);
    prepared = first_column;

    const int64_t first_row = job % strips * kRows;
    const int64_t count = std::min<int64_t>(kRows, m - first_row);
    lay_out(work.strip, rows + first_row * lda, lda, count, k);
#ifdef VOXGATE_HAS_QUADS
    const StepSource* const sources = columns + first_column * ldb;
    const int64_t stride = ldb;
#else
    const StepSource* const sources = work.sources.data();
    const int64_t stride = k;
#endif
    for (int64_t column = first_column; column < last_column; column += kColumns) {
      const int64_t from = column - first_column;
      // While this strip is multiplied, the next one arrives from memory. Where there are few columns, as in
      // 2 s of speech, waiting for the weights takes as long as the products.
      if (next < jobs)
        fetch(rows + next % strips * kRows * lda, lda, from / kColumns, (panel + kColumns - 1) / kColumns);
      kMultiply[static_cast<size_t>(std::min<int64_t>(kColumns, last_column - column))](
          work.strip, sources + from * stride, stride, work.prepared.data() + from * k, k,
          c + column * ldc + first_row, ldc, count);
    }
  }
  return true;
}

} // namespace voxgate

#else

namespace voxgate {

bool q8_gemm(const ggml_compute_params*, int64_t, int64_t, int64_t, const void*, int64_t, const void*,
             int64_t, float*, int64_t) {
  return false;
}

} // namespace voxgate

#endif
