// ggml's operations, with three steps inside them done another way. Compiled in place of ggml's file, once
// for each CPU library.
#include <ggml-cpu.h>
#include <ggml-impl.h>
#include <vec.h>

// Attention converts its values with a portable function, bit by bit. This one has the processor's
// instruction.
#define ggml_fp16_to_fp32_row ggml_cpu_fp16_to_fp32

#if defined(__AVX512F__) && defined(__AVX512DQ__)
namespace {

// GELU in its tanh form (https://arxiv.org/abs/1606.08415), which is x * sigmoid(2u) with
// u = sqrt(2 / pi) * (x + 0.044715 x^3), by the exponential that ggml has for vectors. ggml looks every value
// up in a table of 16-bit floats.
void vec_gelu(const int n, float* y, const float* x) {
  const __m512 one = _mm512_set1_ps(1);
  for (int i = 0; i < n; i += 16) {
    const __mmask16 there = n - i < 16 ? static_cast<__mmask16>((1U << (n - i)) - 1) : 0xFFFF;
    const __m512 v = _mm512_maskz_loadu_ps(there, x + i);
    const __m512 cubic = _mm512_fmadd_ps(_mm512_mul_ps(v, v), _mm512_set1_ps(GELU_COEF_A), one);
    const __m512 minus_2u = _mm512_mul_ps(_mm512_set1_ps(-2 * SQRT_2_OVER_PI), _mm512_mul_ps(v, cubic));
    _mm512_mask_storeu_ps(y + i, there, _mm512_div_ps(v, _mm512_add_ps(one, ggml_v_expf(minus_2u))));
  }
}

} // namespace
#define ggml_vec_gelu_f32 vec_gelu
#endif

// Attention of one query: ggml has each thread sum a part of what is attended to, in 16 bits, and joins the
// parts, so the result would depend on how many threads compute. Here a thread takes whole heads: the calls
// hand over 64-bit rows, so this fits them better than the function they were written for.
static void ggml_compute_forward_flash_attn_ext_f16_one_chunk(const ggml_compute_params* params,
                                                              ggml_tensor* dst, int first_row, int last_row,
                                                              int64_t first, int64_t last, float* partials,
                                                              int64_t stride);
static void ggml_compute_forward_flash_attn_ext_f16_one_chunk(const ggml_compute_params* params,
                                                              ggml_tensor* dst, int64_t first_row,
                                                              int64_t last_row, int64_t first, int64_t last,
                                                              float* partials, int64_t stride) {
  const auto row = static_cast<int>(first_row);
  if (partials == nullptr) {
    ggml_compute_forward_flash_attn_ext_f16_one_chunk(params, dst, row, static_cast<int>(last_row), first,
                                                      last, partials, stride);
    return;
  }
  const int64_t positions = dst->src[1]->ne[1];
  const int64_t part = (positions + params->nth - 1) / params->nth;
  const int64_t threads = (positions + part - 1) / part; // the rest of them is given no part, and not asked
  if (first_row % threads == params->ith) {
    ggml_compute_forward_flash_attn_ext_f16_one_chunk(params, dst, row, row + 1, int64_t{0}, positions,
                                                      partials, stride);
  } else {
    partials[first_row * stride] = -INFINITY; // the highest score
    partials[first_row * stride + 1] = 0;     // the sum: nothing
  }
}

#include <ggml-cpu/ops.cpp>
