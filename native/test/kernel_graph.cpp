#include "kernel_graph.h"

#include "harness.h"

#include "backends/backend_proc.h"
#include "backends/cpu_library.h"

#include <fstream>
#include <iterator>
#include <random>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace voxgate::test {

std::vector<float> random_values(size_t count, unsigned seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values)
    value = normal(generator);
  return values;
}

KernelCalls& calls() {
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  void* const get = ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(cpu), kGetKernelCalls);
  return *reinterpret_cast<GetKernelCalls>(get)();
}

void needs_vectors() {
  if (const auto level = cpu_level(); level == "sse2" || level == "avx" || level == "generic")
    throw Skipped{"ggml was built for " + level + ", where it computes by itself"};
}

static void needs_instructions(const char* flag) {
  const auto level = cpu_level();
  if (level != "amx" && level != "avx512_bf16" && level != "avx512_vnni")
    throw Skipped{"ggml was built for " + level};
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find(flag) == text.npos)
    throw Skipped{std::string("the processor has no") + flag};
}

void needs_bfloat16() {
  needs_instructions(" avx512_bf16");
}

void needs_amx() {
  needs_bfloat16();
  needs_instructions(" amx_bf16");
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0)
    throw Skipped{"the kernel does not let a process use AMX"};
#endif
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
