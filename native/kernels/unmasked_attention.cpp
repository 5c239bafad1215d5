// Attention of Whisper: unmasked_attention.h says what is computed.
#include "unmasked_attention.h"

#include "unmasked_head.h"

#ifdef VOXGATE_HAS_VECTORS

#include "amx_tiles.h"
#include "attention_products.h"
#include "kernel_calls.h"

#include "ggml-cpu-impl.h"
#include "ggml-cpu.h"
#include "vec.h"

namespace voxgate {
namespace {

constexpr int64_t kFewQueries = 16; // for fewer it does not pay to lay out keys and values first

bool is_unmasked(const ggml_tensor* dst) {
  const ggml_tensor& q = *dst->src[0];
  const ggml_tensor& k = *dst->src[1];
  const ggml_tensor& v = *dst->src[2];
  const auto suits = [&](const ggml_tensor& rows) {
    return rows.type == GGML_TYPE_F16 && rows.ne[0] == kDepth && rows.ne[1] == k.ne[1] &&
           rows.ne[2] == q.ne[2] && rows.ne[3] == 1;
  };
  const ggml_tensor* mask = dst->src[3];
  return (mask == nullptr || (dst->op_params[kSameRows] != 0 && mask->ne[0] == k.ne[1])) &&
         dst->src[4] == nullptr && attention_parameter(dst, 1) == 0 && attention_parameter(dst, 2) == 0 &&
         q.type == GGML_TYPE_F32 && q.ne[0] == kDepth && q.ne[3] == 1 && suits(k) && suits(v);
}

// The scores of one query for as many keys as there are lanes, whose 64 values lie side by side.
Floats scores_of(const float* query, const float* keys) {
  Integers rows[kLanes];
  for (int64_t key = 0; key < kLanes; ++key) {
    Floats sum = load(query) * load(keys + key * kDepth);
    for (int64_t i = kLanes; i < kDepth; i += kLanes)
      sum = multiply_add(load(query + i), load(keys + key * kDepth + i), sum);
    rows[key] = (Integers)sum;
  }
  transpose(rows);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      rows[i] = (Integers)((Floats)rows[i] + (Floats)rows[i + half]);
  return (Floats)rows[0];
}

// Keys and values of a head lie as far apart as those of all heads are long, which the processor does not
// foresee: it is told what will be read some keys later.
constexpr int64_t kAhead = 32;
void fetch(const ggml_fp16_t* row) {
  __builtin_prefetch(row);
  __builtin_prefetch(row + kDepth / 2);
}

// Attends with `kCount` queries from `first` on, in floats, keys and values as they lie.
template <int kCount>
void attend_with(const UnmaskedHead& head, int64_t first, float* scores, int64_t width) {
  for (int64_t key = 0; key < head.keys; key += kLanes) {
    alignas(64) float keys[kLanes * kDepth];
    for (int64_t row = 0; row < kLanes; ++row) { // keys past the last repeat it
      fetch(head.key(std::min(key + row + kAhead, head.keys - 1)));
      for (int64_t i = 0; i < kDepth; i += kLanes)
        store(keys + row * kDepth + i, from_halves(head.key(std::min(key + row, head.keys - 1)) + i));
    }
    for (int64_t query = 0; query < kCount; ++query)
      store(scores + query * width + key, scores_of(head.query(first + query), keys));
  }
  float totals[kCount];
  for (int64_t query = 0; query < kCount; ++query) {
    float* const s = scores + query * width;
    const float highest = scale_scores(s, head.scale, head.offsets, head.keys);
    totals[query] = static_cast<float>(ggml_vec_soft_max_f32(static_cast<int>(head.keys), s, s, highest));
  }
  // The registers of values that are read at once: the sums of all queries have room beside them.
  constexpr int64_t kPart = std::min(kDepth / kLanes, kRegisters / (kCount > 2 ? 8 : 2 * kCount));
  for (int64_t begin = 0; begin < kDepth; begin += kPart * kLanes) {
    Floats sums[kCount][kPart] = {};
    for (int64_t key = 0; key < head.keys; ++key) {
      fetch(head.value(std::min(key + kAhead, head.keys - 1)) + begin);
      Floats values[kPart];
      VOXGATE_UNROLL
      for (int i = 0; i < kPart; ++i)
        values[i] = from_halves(head.value(key) + begin + kLanes * i);
      VOXGATE_UNROLL
      for (int query = 0; query < kCount; ++query) {
        const Floats weight = spread(scores[query * width + key]);
        VOXGATE_UNROLL
        for (int i = 0; i < kPart; ++i)
          sums[query][i] = multiply_add(weight, values[i], sums[query][i]);
      }
    }
    for (int64_t query = 0; query < kCount; ++query)
      for (int64_t i = 0; i < kPart; ++i)
        store(head.result(first + query) + begin + kLanes * i, sums[query][i] / spread(totals[query]));
  }
}

bool attend_few(const UnmaskedHead& head, ThreadMemory& memory) {
  using Attend = decltype(&attend_with<1>);
  constexpr Attend kAttend[] = {nullptr,        attend_with<1>, attend_with<2>, attend_with<3>,
                                attend_with<4>, attend_with<5>, attend_with<6>};
  static_assert(kQueryBlock == 6);
  const int64_t width = up_to(head.keys, kLanes);
  auto* const scores =
      static_cast<float*>(memory.of(static_cast<size_t>(kQueryBlock * width) * sizeof(float)));
  if (scores == nullptr)
    return false;
  for (int64_t query = head.first; query < head.end; query += kQueryBlock)
    kAttend[std::min(kQueryBlock, head.end - query)](head, query, scores, width);
  return true;
}

// Attends in floats, with keys and values laid out first.
bool attend_in_floats(const UnmaskedHead& head, ThreadMemory& memory) {
  const int64_t width = up_to(head.keys, kColumnBlock);
  auto* at = static_cast<float*>(memory.of(
      static_cast<size_t>((2 * kDepth + kQueryBlock) * width + kQueryBlock * kDepth) * sizeof(float)));
  if (at == nullptr)
    return false;
  const auto take = [&at](int64_t floats) { return std::exchange(at, at + floats); };
  float* const keys = take(kDepth * width); // panels with a row for each of the 64 values
  float* const values = take(width * kDepth);
  float* const scores = take(kQueryBlock * width);
  float* const mixed = take(kQueryBlock * kDepth);
  for (int64_t key = 0; key < width; key += kLanes)
    for (int64_t i = 0; i < kDepth; i += kLanes) {
      Integers rows[kLanes];
      for (int64_t row = 0; row < kLanes; ++row)
        rows[row] = key + row < head.keys ? (Integers)from_halves(head.key(key + row) + i) : spread(0);
      transpose(rows);
      for (int64_t row = 0; row < kLanes; ++row)
        store(static_cast<void*>(keys + (key / kPanel * kDepth + i + row) * kPanel + key % kPanel),
              rows[row]);
    }
  for (int64_t key = 0; key < head.keys; ++key)
    for (int64_t i = 0; i < kDepth; i += kLanes)
      store(values + key * kDepth + i, from_halves(head.value(key) + i));
  const auto stride = static_cast<int64_t>(head.dst->src[0]->nb[1] / sizeof(float));
  for (int64_t query = head.first; query < head.end; query += kQueryBlock) {
    const int64_t rows = std::min(kQueryBlock, head.end - query);
    product(rows, head.query(query), stride, keys, kPanel, scores, width, kDepth, width, kDepth);
    float sums[kQueryBlock];
    for (int64_t row = 0; row < rows; ++row) {
      float* const s = scores + row * width;
      const float highest = scale_scores(s, head.scale, head.offsets, head.keys);
      sums[row] = static_cast<float>(ggml_vec_soft_max_f32(static_cast<int>(head.keys), s, s, highest));
    }
    product(rows, scores, width, values, kDepth, mixed, kDepth, head.keys, kDepth);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < kDepth; ++i)
        head.result(query + row)[i] = mixed[row * kDepth + i] / sums[row];
  }
  return true;
}

} // namespace

bool unmasked_attention(ggml_tensor* dst, int64_t first, int64_t end) {
  if (!is_unmasked(dst))
    return false;
  static thread_local ThreadMemory memory;
  static thread_local ThreadMemory offsets_memory;
  float* offsets = nullptr;
  if (const ggml_tensor* mask = dst->src[3]; mask != nullptr) {
    offsets = static_cast<float*>(offsets_memory.of(static_cast<size_t>(mask->ne[0]) * sizeof(float)));
    if (offsets == nullptr)
      return false;
    ggml_cpu_fp16_to_fp32(static_cast<const ggml_fp16_t*>(mask->data), offsets, mask->ne[0]);
  }
  const int64_t queries = dst->src[0]->ne[1];
  auto* attend = &attend_in_floats;
  if (queries < kFewQueries) {
    attend = &attend_few;
    VOXGATE_COUNT_CALL(attention_of_few);
#ifdef VOXGATE_HAS_BFLOAT16
  } else if (bfloat16_products() == Bfloat16::tiles) {
    attend = &attend_on_tiles;
    VOXGATE_COUNT_CALL(attention_on_tiles);
  } else if (bfloat16_products() == Bfloat16::vectors) {
    attend = &attend_on_vectors;
    VOXGATE_COUNT_CALL(attention_on_vectors);
#endif
  } else {
    VOXGATE_COUNT_CALL(attention_in_floats);
  }
  for (int64_t row = first; row < end;) {
    const int64_t head = row / queries;
    const int64_t stop = std::min(end, (head + 1) * queries);
    if (!attend({dst, offsets, head, row - head * queries, stop - head * queries}, memory))
      return false;
    row = stop;
  }
  return true;
}

} // namespace voxgate

#else

namespace voxgate {

bool unmasked_attention(ggml_tensor*, int64_t, int64_t) {
  return false;
}

} // namespace voxgate

#endif
