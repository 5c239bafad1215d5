#pragma once

#include <ggml-impl.h>

namespace voxgate::test {

// The tests have no GPU, so a backend that ends as ggml's CUDA code does stands for one.

inline const char* g_failure = nullptr; // as the CUDA library names it

// These are the words of ggml_cuda_error() in ggml-cuda.cu: the reason is only in the log.
inline void end_as_ggml_does() {
  if (g_failure == nullptr)
    return;
  GGML_LOG_ERROR("CUDA error: %s\n", g_failure);
  GGML_LOG_ERROR("  current device: %d, in function %s at %s:%d\n", 0, __func__, __FILE__, __LINE__);
  GGML_LOG_ERROR("  %s\n", "cudaStreamSynchronize(cuda_ctx->stream())");
  GGML_ABORT("CUDA error");
}

constexpr auto kMemory = "out of memory";
constexpr auto kMemoryOfCublas = "the resource allocation failed";
constexpr auto kNoHandleOfCublas = "the library was not initialized";
constexpr auto kSticky = "an illegal memory access was encountered";

} // namespace voxgate::test
