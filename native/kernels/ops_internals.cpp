// Compiles ggml's operations (ops.cpp of ggml 0.15.1), once for each CPU library, from a copy in which five
// calls inside them arrive at functions of ours, and three functions are renamed to `upstream_...`
// (native/patches/ggml). Each row names what is called, the lines that call it, what happens instead and why,
// and the test that fails where it does not happen:
//
// attend (8984, 9046)
//   Attention of one query by whole heads. In ggml each thread sums a part of the positions, in 16 bits, and
//   the parts are joined, so that the result would depend on how many threads compute. Without a mask a few
//   queries are computed by unmasked_attention.h.
//   Tests: "attention of one query is the same to the last bit on any number of threads", "attention of a few
//   queries is ours".
// attend_many (9044)
//   Attention of many queries without a mask (unmasked_attention.h). ggml turns keys and values to floats
//   anew for each 64 queries. Tests: "attention of many queries is ours, in floats", "... on AMX tiles".
// im2col (6403)
//   What the taps of a convolution over time see, laid out by each thread for times of its own (im2col.h). In
//   ggml both threads write to each line of the cache. Test: "what the taps of a convolution see is ours".
// gelu_row (2132)
//   GELU computed for a register of values at once. ggml looks every value up in a table of 16-bit floats.
//   Test: "GELU is ours, its tanh form, ends of rows included".
// halves_to_floats (8796)
//   The processor's instruction. ggml_fp16_to_fp32_row is portable, bit by bit.
//   Test: "attention of other shapes than Whisper's is ggml's, with the processor's own instruction".
//
// sgemm_internals.cpp does the same for the products of matrices ("quantized products are ours", "products on
// AMX tiles are those of bfloat16 for every shape"). The tests are in native/test/attention_test.cpp and
// kernels_test.cpp. ggml-cpu.cpp finds the operations of speech_ops.h by name (speech_ops_test.cpp), and
// ggml-cpu.c calls fused_ops.cpp before it computes a node ("nodes that follow each other are computed as
// one", "products of a few columns are computed with what follows them").

// This comes first. Behind <new>, ops.h takes GCC's size of a cache line, which is 256 bytes on ARM.
// ggml-cpu.c, which allocates the memory of these operations, takes 64, and they would write past its end.
#include <ops.h>
static_assert(CACHE_LINE_SIZE_F32 == 64 / sizeof(float));

#include "gelu.h"
#include "im2col.h"
#include "taken.h"
#include "unmasked_attention.h"

#include <ggml-cpu.h>
#include <ggml-impl.h>
#include <vec.h>

static void attend(const ggml_compute_params* params, ggml_tensor* dst, int64_t first_row, int64_t last_row,
                   int64_t first_position, int64_t last_position, float* partials, int64_t stride);
static void attend_many(const ggml_compute_params* params, ggml_tensor* dst, int first_row, int last_row);
static void im2col(const ggml_compute_params* params, ggml_tensor* dst);
using voxgate::gelu_row;
static void halves_to_floats(const ggml_fp16_t* halves, float* floats, int64_t count);

#include <patched/ggml/src/ggml-cpu/ops.cpp> // NOLINT(bugprone-suspicious-include): its statics are reached

// Without `partials` a call is whole rows already. With them it is the part of one thread, which takes whole
// heads instead and leaves the other heads to the other threads.
static void attend(const ggml_compute_params* params, ggml_tensor* dst, int64_t first_row, int64_t last_row,
                   int64_t first_position, int64_t last_position, float* partials, int64_t stride) {
  const auto row = static_cast<int>(first_row);
  if (partials == nullptr) {
    if (!voxgate::unmasked_attention(dst, first_row, last_row))
      upstream_attend(params, dst, row, static_cast<int>(last_row), first_position, last_position, partials,
                      stride);
    return;
  }
  VOXGATE_TAKEN(whole_heads);
  const int64_t positions = dst->src[1]->ne[1];
  const int64_t part = (positions + params->nth - 1) / params->nth;
  const int64_t threads = (positions + part - 1) / part; // the others were given no part, and are not called
  if (first_row % threads == params->ith) {
    float* const partial = partials + first_row * stride;
    if (voxgate::unmasked_attention(dst, first_row, first_row + 1, partial + 2)) {
      partial[0] = 0; // the highest score
      partial[1] = 1; // the sum, by which the values behind it are divided already
    } else {
      upstream_attend(params, dst, row, row + 1, 0, positions, partials, stride);
    }
  } else {
    partials[first_row * stride] = -INFINITY; // the highest score
    partials[first_row * stride + 1] = 0;     // the sum: nothing
  }
}

static void attend_many(const ggml_compute_params* params, ggml_tensor* dst, int first_row, int last_row) {
  if (!voxgate::unmasked_attention(dst, first_row, last_row))
    upstream_attend_many(params, dst, first_row, last_row);
}

static void im2col(const ggml_compute_params* params, ggml_tensor* dst) {
  if (!voxgate::im2col(params, dst))
    upstream_im2col(params, dst);
}

static void halves_to_floats(const ggml_fp16_t* halves, float* floats, int64_t count) {
  VOXGATE_TAKEN(halves_to_floats);
  ggml_cpu_fp16_to_fp32(halves, floats, count);
}
