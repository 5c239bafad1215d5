#pragma once

#include "kernels/kernel_calls.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml.h>

#include <functional>
#include <vector>

namespace voxgate::test {

// Gives normally distributed values, the same for the same seed.
std::vector<float> random_values(size_t count, unsigned seed, float scale = 1);

// The calls of kernels in the CPU library that is in use.
KernelCalls& calls();

// Skips the test where ggml's CPU library was built for less than AVX2: ggml then computes by itself, and
// none of our kernels is in use.
void needs_vectors();
// Skips where the processor has no AMX, or the kernel does not let processes use it.
void needs_amx();
// Skips where the processor has no instructions for bfloat16.
void needs_bfloat16();

// Lets kernels use no more than this for products in bfloat16, as long as it lives.
struct MostBfloat16 {
  explicit MostBfloat16(Bfloat16 most) { calls().bfloat16 = most; }
  MostBfloat16(const MostBfloat16&) = delete;
  MostBfloat16& operator=(const MostBfloat16&) = delete;
  ~MostBfloat16() { calls().bfloat16 = Bfloat16::tiles; }
};

// Holds one graph of ggml's on the CPU, built and computed as the backends do it.
struct KernelGraph {
  explicit KernelGraph(int threads);
  ggml_context_ptr context{ggml_init({ggml_tensor_overhead() * 48 + ggml_graph_overhead(), nullptr, true})};
  ggml_backend_ptr backend;

  // Computes `result` and returns its values; `fill` sets the inputs once they have memory.
  std::vector<float> run(ggml_tensor* result, const std::function<void()>& fill);
};

} // namespace voxgate::test
