// Attention of SpeechOps: speech_ops.h says what is computed. A thread takes whole heads, or parts of their
// queries. A query is computed in the same way in each part, so the result does not depend on how many
// threads compute.
#include "attention_products.h"
#include "speech_kernels.h"

#include "kernel_calls.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ggml-cpu-impl.h"
#include "vec.h"

namespace voxgate {
namespace {

// Rows of `from` as columns of `to`; the columns behind them become zeros.
void turn(const Rows& from, int64_t first, int64_t depth, float* to, int64_t width) {
  for (int64_t begin = 0; begin < depth; begin += 16) {
    const int64_t count = std::min<int64_t>(16, depth - begin);
    for (int64_t row = 0; row < from.count; ++row) {
      const float* values = from[row] + first + begin;
      for (int64_t i = 0; i < count; ++i)
        to[(begin + i) * width + row] = values[i];
    }
    for (int64_t i = 0; i < count; ++i)
      std::fill(to + (begin + i) * width + from.count, to + (begin + i + 1) * width, 0.0F);
  }
}

void add(float* __restrict to, const float* __restrict from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] += from[i];
}

struct Head {
  Rows q, k, v, positions;
  const float* bias_u; // null without relative positions
  const float* bias_v;
  const float* mask; // null, or added to the scores of the keys
  int64_t first, depth;
  int64_t begin, end; // the queries
  AttentionMemory sizes;
  float* memory;
};

void attend(const Head& head, ggml_tensor* dst) {
  const auto& sizes = head.sizes;
  const int64_t depth = head.depth;
  const int64_t time = head.q.count;
  float* at = head.memory;
  const auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
  float* const keys = take(depth * sizes.keys);
  float* const positions = take(depth * sizes.positions);
  float* const values = take(time * sizes.values);
  float* const content_queries = take(kQueryBlock * depth);
  float* const position_queries = take(kQueryBlock * depth);
  float* const scores = take(kQueryBlock * sizes.keys);
  float* const shifted = take(kQueryBlock * sizes.span);
  float* const mixed = take(kQueryBlock * sizes.values);

  turn(head.k, head.first, depth, keys, sizes.keys);
  if (head.bias_u != nullptr)
    turn(head.positions, head.first, depth, positions, sizes.positions);
  for (int64_t row = 0; row < time; ++row) {
    std::copy_n(head.v[row] + head.first, depth, values + row * sizes.values);
    std::fill(values + row * sizes.values + depth, values + (row + 1) * sizes.values, 0.0F);
  }
  const float scale = 1 / std::sqrt(static_cast<float>(depth));
  for (int64_t query = head.begin; query < head.end; query += kQueryBlock) {
    const int64_t rows = std::min(kQueryBlock, head.end - query);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < depth; ++i) {
        const float value = head.q[query + row][head.first + i];
        content_queries[row * depth + i] = value + (head.bias_u != nullptr ? head.bias_u[head.first + i] : 0);
        if (head.bias_v != nullptr)
          position_queries[row * depth + i] = value + head.bias_v[head.first + i];
      }
    product(rows, content_queries, depth, keys, sizes.keys, scores, sizes.keys, depth, sizes.keys);
    if (head.bias_v != nullptr) {
      // Row T - 1 - q + k of the positions is for query q and key k, so each query begins a row before the
      // last.
      const int64_t first = time - query - rows;
      product(rows, position_queries, depth, positions + first, sizes.positions, shifted, sizes.span, depth,
              up_to(time + rows - 1, kColumnBlock));
    }
    float sums[kQueryBlock];
    for (int64_t row = 0; row < rows; ++row) {
      float* const s = scores + row * sizes.keys;
      if (head.bias_v != nullptr)
        add(s, shifted + row * sizes.span + (rows - 1 - row), time);
      const float highest = scale_scores(s, scale, head.mask, time);
      sums[row] = static_cast<float>(ggml_vec_soft_max_f32(static_cast<int>(time), s, s, highest));
    }
    product(rows, scores, sizes.keys, values, sizes.values, mixed, sizes.values, time, sizes.values);
    for (int64_t row = 0; row < rows; ++row) {
      float* out = row_of(dst, query + row) + head.first;
      for (int64_t i = 0; i < depth; ++i)
        out[i] = mixed[row * sizes.values + i] / sums[row];
    }
  }
}

} // namespace

void speech_attention(ggml_tensor* dst, int ith, int nth, void* user) {
  VOXGATE_COUNT_CALL(speech_attention);
  const auto heads = static_cast<int64_t>(reinterpret_cast<uintptr_t>(user));
  const bool relative = dst->src[3] != nullptr;
  const int64_t width = dst->ne[0];
  const int64_t time = dst->src[0]->ne[1];
  const int64_t depth = width / heads;
  const AttentionMemory sizes(depth, time, relative ? dst->src[3]->ne[1] : 0);
  const int64_t parts = attention_parts(heads, nth);
  const int64_t blocks = (time + kQueryBlock - 1) / kQueryBlock;
  for (int64_t job = ith; job < heads * parts; job += nth) {
    const int64_t part = job % parts;
    const int64_t begin = blocks * part / parts * kQueryBlock;
    const int64_t end = std::min(time, blocks * (part + 1) / parts * kQueryBlock);
    if (begin == end)
      continue;
    attend({dst->src[0], dst->src[1], dst->src[2], relative ? dst->src[3] : dst->src[0],
            relative ? floats(dst->src[4]) : nullptr, relative ? floats(dst->src[5]) : nullptr,
            relative ? floats(dst->src[6]) : nullptr, job / parts * depth, depth, begin, end, sizes,
            row_of(dst, time) + job * up_to(sizes.floats, width)},
           dst);
  }
}

} // namespace voxgate
