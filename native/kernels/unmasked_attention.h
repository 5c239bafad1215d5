#pragma once

#include <ggml.h>

#include <cstdint>

namespace voxgate {

// The last parameter of the operation, of which ggml uses the first four.
constexpr int kSameRows = GGML_MAX_OP_PARAMS / sizeof(int32_t) - 1;

// Says of what ggml_flash_attn_ext made that all rows of its mask are the same.
inline void tell_same_rows(ggml_tensor* attention) {
  attention->op_params[kSameRows] = 1;
}

// Attention that sees all keys, as Whisper asks ggml for it: softmax(scale * K q + offsets) v for each head,
// of many queries in the encoder and of a query for each text in the decoder. Many queries are computed in
// bfloat16 where the processor has that, on AMX tiles or with the instructions of AVX-512: queries, keys,
// values and weights are rounded to it. All else is computed in floats. Sums are floats.
//
//   dst     what ggml_flash_attn_ext made: [64 values, heads, queries] floats
//   src[0]  queries, [64, queries, heads] floats
//   src[1]  keys, [64, positions, heads] halves
//   src[2]  values, as the keys
//   src[3]  null where there are no offsets, or a mask of [positions, queries] halves, whose rows are all the
//           same (tell_same_rows)
//
// It computes the rows from `first` to `end`, where row h * queries + q is query q of head h. A row does not
// depend on which others are computed with it. It returns false, and changes nothing, when it is not made for
// the shape or the processor, or there is no memory.
bool unmasked_attention(ggml_tensor* dst, int64_t first, int64_t end);

} // namespace voxgate
