#pragma once

// In the build of the tests each kernel counts its calls, so that a test can fail when ggml computes without
// it. In every other build VOXGATE_COUNT_CALL does nothing.
#ifdef VOXGATE_TESTS

#include "cpu_level.h"

#include <atomic>

namespace voxgate {

struct KernelCalls {
  std::atomic<long> q8_gemm{0};
  std::atomic<long> q8_gemm_few{0}; // its variant for a few columns
  std::atomic<long> q8_tiles{0};
  std::atomic<long> amx_gemm{0};
  std::atomic<Bfloat16> bfloat16{Bfloat16::tiles}; // set by tests to the most that kernels may use
  std::atomic<long> speech_norm{0};
  std::atomic<long> speech_attention{0};
  std::atomic<long> speech_convolution{0};
  std::atomic<long> speech_subsample{0};
  std::atomic<long> speech_subsample_again{0};
  std::atomic<long> speech_finish{0};
  std::atomic<long> speech_memory{0};
  std::atomic<long> tile_norm{0};
  std::atomic<long> tile_hear{0};
  std::atomic<long> tile_attention{0};
  std::atomic<long> tile_remember{0};
  std::atomic<long> tile_expand{0};
  std::atomic<long> tile_contract{0};
  std::atomic<long> tile_scores{0};
  std::atomic<long> attention_of_few{0};
  std::atomic<long> attention_in_floats{0};
  std::atomic<long> attention_on_tiles{0};
  std::atomic<long> attention_on_vectors{0};
  std::atomic<long> attend_rows{0};
  std::atomic<long> gelu{0};
  std::atomic<long> fused_ops{0};
  std::atomic<long> few_products{0}; // with what follows them
  std::atomic<long> attention_behind_products{0};
  std::atomic<long> halves_to_floats{0};
};
extern KernelCalls kernel_calls; // in found_by_name.cpp

// The tests find those of the library that they compute with under this name.
using GetKernelCalls = KernelCalls* (*)();
constexpr const char* kGetKernelCalls = "voxgate_kernel_calls";

} // namespace voxgate

#define VOXGATE_COUNT_CALL(kernel) voxgate::kernel_calls.kernel.fetch_add(1, std::memory_order_relaxed)

#else
#define VOXGATE_COUNT_CALL(kernel) static_cast<void>(0)
#endif
