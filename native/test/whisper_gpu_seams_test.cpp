#include "apart.h"
#include "whisper_fixtures.h"

#include "backends/ggml_runtime.h"
#include "backends/whisper/whisper_seams.h"

#include <ggml-backend-impl.h>

#include <cstdlib>
#include <string>

// Other code of whisper_internals.cpp runs where a GPU is. Here a device that computes on the CPU stands for
// one.

using namespace voxgate;
using namespace voxgate::test;

namespace {

ggml_backend_reg g_registry{};
ggml_backend_device g_device{};
int g_backends_made = 0;
bool g_is_cuda = false;

// A device in front of the CPU, as a GPU is one, that computes on the CPU. It is there until the process
// ends.
void register_accelerator() {
  g_device.iface.get_name = [](ggml_backend_dev_t) { return "ACCEL0"; };
  g_device.iface.get_description = [](ggml_backend_dev_t) { return "The CPU again"; };
  g_device.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; };
  g_device.iface.get_memory = [](ggml_backend_dev_t, size_t* free, size_t* total) {
    *free = *total = size_t{1} << 30;
  };
  g_device.iface.init_backend = [](ggml_backend_dev_t, const char*) {
    ++g_backends_made;
    auto* backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    if (g_is_cuda)
      backend->iface.get_name = [](ggml_backend_t) { return "CUDA0"; };
    return backend;
  };
  g_device.iface.get_buffer_type = [](ggml_backend_dev_t) { return ggml_backend_cpu_buffer_type(); };
  g_device.iface.supports_op = [](ggml_backend_dev_t, const ggml_tensor*) { return true; };
  g_device.iface.supports_buft = [](ggml_backend_dev_t, ggml_backend_buffer_type_t type) {
    return ggml_backend_buft_is_host(type);
  };
  g_device.reg = &g_registry;
  g_registry.api_version = GGML_BACKEND_API_VERSION;
  g_registry.iface.get_name = [](ggml_backend_reg_t) { return "ACCEL"; };
  g_registry.iface.get_device_count = [](ggml_backend_reg_t) { return size_t{1}; };
  g_registry.iface.get_device = [](ggml_backend_reg_t, size_t) { return &g_device; };
  ggml_backend_register(&g_registry);
}

} // namespace

// With a GPU the graphs of the audio keep their own memory, and nothing is moved between them.
TEST("whisper seams: with a GPU in front of the CPU the text is the same") {
  apart([] {
    auto options = english();
    options.audio_context = 300;
    options.max_tokens = 12;
    options.words = true;
    const auto hear = [&] {
      std::vector<std::vector<Segment>> heard;
      const auto model = load_synthetic(4);
      for (const int beams : {1, 3}) {
        options.beams = beams;
        heard.push_back(model->transcribe(noise(40000), options, {}, CancelToken()));
        CHECK(count_tokens(heard.back()) > 5);
      }
      return heard;
    };
    const auto alone = hear();
    register_accelerator();
    CHECK(hear() == alone);
    CHECK(g_backends_made > 0);
    g_is_cuda = true;
    CHECK(hear() == alone);
  });
}

TEST("whisper seams: the graph of a step is kept, on a CPU and with CUDA") {
  const auto check = [](int most_graphs) {
    auto options = english();
    options.audio_context = 300;
    options.max_tokens = 60;
    const auto model = load_synthetic(4);
    for (const int beams : {1, 3}) {
      options.beams = beams;
      seam_counts = {};
      const auto heard = model->transcribe(noise(40000), options, {}, CancelToken());
      CHECK(count_tokens(heard) > 40);
      CHECK(seam_counts.steps > 40);
      CHECK(seam_counts.step_graphs < seam_counts.steps);
      CHECK(beams > 1 || seam_counts.step_graphs <= most_graphs);
    }
    // The graph of the last step is still there, and other audio has other positions.
    CHECK(!model->detect_language(noise(20000), {.parts = {{0, 400}, {500, 1000}}}, CancelToken()).empty());
    options.audio_context = 200;
    CHECK(count_tokens(model->transcribe(noise(20000), options, {}, CancelToken())) > 5);
  };
  check(3); // 65 rows of the cache, 32 more with each graph
  apart([&] {
    g_is_cuda = true;
    register_accelerator();
    check(1);
  });
}

TEST("CUDA's kernels do not overlap") {
  apart([] {
    use_gpus({});
    const char* overlap = std::getenv("GGML_CUDA_PDL");
    CHECK(overlap != nullptr && std::string(overlap) == "0");
  });
}
