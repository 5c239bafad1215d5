// Compiles ggml's operations (ops.cpp of ggml 0.15.1), once for each CPU library, from a copy in which three
// calls inside them arrive at functions of ours, and one function is renamed to `upstream_...`. What each
// does instead, and why, stands at the top of its patch in native/patches/ggml. Here are the tests that fail
// where it does not happen, in native/test/attention_test.cpp and kernels_test.cpp:
//
// attend_many: "attention of many queries is ours, in floats", "... on AMX tiles"
// gelu_row: "GELU is ours, its tanh form, ends of rows included"
// halves_to_floats: "attention of other shapes than Whisper's is ggml's, with the processor's own
// instruction"
//
// sgemm_internals.cpp does the same for the products of matrices ("quantized products are ours", "products on
// AMX tiles are those of bfloat16 for every shape"). ggml-cpu.cpp finds the operations of speech_ops.h by
// name (speech_ops_test.cpp), and ggml-cpu.c calls fused_ops.cpp before it computes a node ("nodes that
// follow each other are computed as one", "products of a few columns are computed with what follows them",
// "attention of one query is the same to the last bit on any number of threads", "attention of a few queries
// is ours").

// This comes first. Behind <new>, ops.h takes GCC's size of a cache line, which is 256 bytes on ARM.
// ggml-cpu.c, which allocates the memory of these operations, takes 64, and they would write past its end.
#include <ops.h>
static_assert(CACHE_LINE_SIZE_F32 == 64 / sizeof(float));

#include "attend_rows.h"
#include "gelu.h"
#include "kernel_calls.h"
#include "unmasked_attention.h"

#include <ggml-cpu.h>
#include <ggml-impl.h>
#include <vec.h>

static void attend_many(const ggml_compute_params* params, ggml_tensor* dst, int first_row, int last_row);
using voxgate::gelu_row;
static void halves_to_floats(const ggml_fp16_t* halves, float* floats, int64_t count);

#include <patched/ggml/src/ggml-cpu/ops.cpp> // NOLINT(bugprone-suspicious-include): its statics are reached

bool voxgate::has_few_queries(const ggml_tensor* attention) {
  return attention->src[0]->ne[1] < GGML_FA_TILE_Q;
}

void voxgate::attend_rows(const ggml_compute_params* params, ggml_tensor* dst, int64_t first, int64_t end) {
  VOXGATE_COUNT_CALL(attend_rows);
  if (!unmasked_attention(dst, first, end))
    ggml_compute_forward_flash_attn_ext_f16_one_chunk(
        params, dst, static_cast<int>(first), static_cast<int>(end), 0, dst->src[1]->ne[1], nullptr, 0);
}

static void attend_many(const ggml_compute_params* params, ggml_tensor* dst, int first_row, int last_row) {
  if (!voxgate::unmasked_attention(dst, first_row, last_row))
    upstream_attend_many(params, dst, first_row, last_row);
}

static void halves_to_floats(const ggml_fp16_t* halves, float* floats, int64_t count) {
  VOXGATE_COUNT_CALL(halves_to_floats);
  ggml_cpu_fp16_to_fp32(halves, floats, count);
}
