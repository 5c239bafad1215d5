#include "kernel_graph.h"

#include "harness.h"

#include "backends/backend_proc.h"

#include <ggml-cpu.h>

#include <random>

namespace voxgate::test {

std::vector<float> random_values(size_t count, unsigned seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values)
    value = normal(generator);
  return values;
}

void needs_vnni() {
  if (ggml_cpu_has_avx512_vnni() == 0)
    throw Skipped{"ggml was built for a processor without AVX-512 VNNI, where it multiplies by itself"};
}

void needs_avx512() {
  if (ggml_cpu_has_avx512() == 0)
    throw Skipped{"ggml was built for a processor without AVX-512, where it computes GELU by itself"};
}

KernelGraph::KernelGraph(int threads)
    : backend(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr)) {
  set_backend_threads(backend.get(), threads);
}

std::vector<float> KernelGraph::run(ggml_tensor* result, const std::function<void()>& fill) {
  ggml_cgraph* graph = ggml_new_graph(context.get());
  ggml_build_forward_expand(graph, result);
  const ggml_backend_buffer_ptr buffer(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
  fill();
  CHECK(ggml_backend_graph_compute(backend.get(), graph) == GGML_STATUS_SUCCESS);
  std::vector<float> values(static_cast<size_t>(ggml_nelements(result)));
  ggml_backend_tensor_get(result, values.data(), 0, values.size() * sizeof(float));
  return values;
}

} // namespace voxgate::test
