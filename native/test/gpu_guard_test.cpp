#include "harness.h"

#include "backends/gpu_guard.h"

#include <ggml.h>

// The tests have no GPU, so a backend that ends as ggml's CUDA code does stands for one.

using namespace voxgate;
using namespace voxgate::test;

namespace {

const char* g_failure = nullptr; // in ggml's words

void end_as_ggml_does() {
  if (g_failure != nullptr)
    GGML_ABORT("%s", g_failure);
}

class Failing final : public Backend {
 public:
  Failing() { info_.family = "failing"; }
  const ModelInfo& info() const override { return info_; }
  std::vector<Segment> transcribe(std::span<const float>, const ChunkOptions&, const ChunkEvents&,
                                  const CancelToken&) override {
    end_as_ggml_does();
    return std::vector<Segment>(1);
  }
  std::vector<LanguageProbability> detect_language(std::span<const float>, const DetectionOptions&,
                                                   const CancelToken& cancel) override {
    cancel.check();
    return {{"en", 1}};
  }

 private:
  ModelInfo info_;
};

std::unique_ptr<Backend> load_failing(const LoadOptions&, const CancelToken&) {
  end_as_ggml_does();
  return std::make_unique<Failing>();
}

std::unique_ptr<Backend> load(const char* device) {
  return load_guarded(load_failing, {"failing", "", device, 1}, CancelToken());
}

} // namespace

TEST("gpu guard: a GPU that fails throws, and is not asked again") {
  g_failure = nullptr;
  const auto model = load("cuda");
  CHECK(model->info().family == "failing");
  CHECK(model->transcribe({}, {}, {}, CancelToken()).size() == 1);
  g_failure = "CUDA error: an illegal memory access was encountered";
  CHECK(failure_of([&] { model->transcribe({}, {}, {}, CancelToken()); }) == StatusCode::inference_failed);
  g_failure = nullptr;
  CHECK(failure_of([&] { model->transcribe({}, {}, {}, CancelToken()); }) == StatusCode::inference_failed);
  CHECK(failure_of([&] { model->detect_language({}, {}, CancelToken()); }) == StatusCode::inference_failed);
}

TEST("gpu guard: a lack of memory is reported as out_of_memory, while loading and later") {
  g_failure = "CUDA error: out of memory";
  CHECK(failure_of([] { load("cuda:1"); }) == StatusCode::out_of_memory);
  g_failure = nullptr;
  const auto model = load("cuda:1");
  g_failure = "CUDA error: out of memory";
  CHECK(failure_of([&] { model->transcribe({}, {}, {}, CancelToken()); }) == StatusCode::out_of_memory);
}

TEST("gpu guard: an exception of the backend itself goes through, and the backend stays usable") {
  g_failure = nullptr;
  const auto model = load("cuda");
  CancelToken cancelled;
  cancelled.cancel();
  CHECK(failure_of([&] { model->detect_language({}, {}, cancelled); }) == StatusCode::cancelled);
  CHECK(model->detect_language({}, {}, CancelToken()).size() == 1);
}
