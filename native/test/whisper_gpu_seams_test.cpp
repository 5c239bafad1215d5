#include "accelerator.h"
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

// Registers the accelerator as if it were CUDA.
void register_cuda() {
  register_accelerator(
      [](ggml_backend_t backend, int) { backend->iface.get_name = [](ggml_backend_t) { return "CUDA0"; }; });
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
        heard.push_back(model->transcribe(noise(40000), options, CancelToken()));
        CHECK(count_tokens(heard.back()) > 5);
      }
      return heard;
    };
    const auto alone = hear();
    register_accelerator();
    CHECK(hear() == alone);
    CHECK(accelerator_backends() > 0);
    register_cuda();
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
      const auto heard = model->transcribe(noise(40000), options, CancelToken());
      CHECK(count_tokens(heard) > 40);
      CHECK(seam_counts.steps > 40);
      CHECK(seam_counts.step_graphs < seam_counts.steps);
      CHECK(beams > 1 || seam_counts.step_graphs <= most_graphs);
    }
    // The graph of the last step is still there, and other audio has other positions.
    CHECK(!model->detect_language(noise(20000), {.parts = {{0, 400}, {500, 1000}}}, CancelToken()).empty());
    options.audio_context = 200;
    CHECK(count_tokens(model->transcribe(noise(20000), options, CancelToken())) > 5);
  };
  check(3); // 65 rows of the cache, 32 more with each graph
  apart([&] {
    register_cuda();
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
