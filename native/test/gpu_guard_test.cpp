#include "apart.h"
#include "failing_gpu.h"
#include "harness.h"

#include "backends/ggml_runtime.h"
#include "backends/gpu_guard.h"

#include <ggml-backend-impl.h>

// A GPU is lost for the whole process, so that each of these tests runs in a process of its own.

using namespace voxgate;
using namespace voxgate::test;

namespace {

bool g_fails_when_freed = false;
int g_freed = 0;

// Memory on the GPU: once something has failed for good, it cannot even be freed.
struct Buffer {
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    ++g_freed;
    if (g_fails_when_freed) {
      g_failure = kSticky;
      end_as_ggml_does();
    }
  }
};

class Failing final : public Backend {
 public:
  Failing() { info_.family = "failing"; }
  const ModelInfo& info() const override { return info_; }
  LaneFactory lane_factory() const override {
    return [] {
      auto lane = std::make_unique<Failing>();
      end_as_ggml_does();
      return lane;
    };
  }
  std::vector<Segment> transcribe(std::span<const float>, const ChunkOptions&, const CancelToken&) override {
    const Buffer working_memory;
    end_as_ggml_does();
    return std::vector<Segment>(1);
  }
  std::vector<Languages> detect_language(std::span<const float>, const DetectionOptions&,
                                         const CancelToken& cancel) override {
    cancel.check();
    return {{{"en", 1}}};
  }

 private:
  Buffer weights_;
  ModelInfo info_;
};

std::unique_ptr<Backend> load_failing(const LoadOptions&, const CancelToken&) {
  auto model = std::make_unique<Failing>();
  end_as_ggml_does();
  return model;
}

// whisper.cpp turns every exception into a null pointer while it loads.
std::unique_ptr<Backend> load_swallowing(const LoadOptions& options, const CancelToken& cancel) {
  try {
    return load_failing(options, cancel);
  } catch (...) {
    throw Failure(StatusCode::load_failed, "Its weights do not fit");
  }
}

std::unique_ptr<Backend> load(const char* device = "cuda", BackendFactory factory = load_failing) {
  return load_guarded(factory, {"failing", "", device, 1}, CancelToken());
}

StatusCode code_of(Backend& model) {
  return failure_of([&] { model.transcribe({}, {}, CancelToken()); });
}

} // namespace

TEST("gpu guard: a GPU that fails throws, and is not asked again") {
  apart([] {
    const auto model = load();
    CHECK(model->info().family == "failing");
    CHECK(model->transcribe({}, {}, CancelToken()).size() == 1);
    g_failure = kSticky;
    CHECK(code_of(*model) == StatusCode::inference_failed);
    g_failure = nullptr;
    CHECK(code_of(*model) == StatusCode::inference_failed);
    CHECK(failure_of([&] { model->detect_language({}, {}, CancelToken()); }) == StatusCode::inference_failed);
  });
}

TEST("gpu guard: the reason of a failure is the one that ggml has logged") {
  apart([] {
    const auto model = load();
    g_failure = kSticky;
    std::string message;
    try {
      model->transcribe({}, {}, CancelToken());
    } catch (const Failure& failure) {
      message = failure.what();
    }
    CHECK(message == std::string("The GPU failed: CUDA error: ") + kSticky);
  });
}

TEST("gpu guard: after a failure no destructor of any model on the GPU runs, and none is used or loaded") {
  apart([] {
    auto failing = load();
    auto other = load("cuda:1");
    g_freed = 0;
    g_failure = kSticky;
    g_fails_when_freed = true;
    CHECK(code_of(*failing) == StatusCode::inference_failed);
    g_failure = nullptr;
    failing.reset();
    CHECK(code_of(*other) == StatusCode::inference_failed);
    other.reset();
    CHECK(g_freed == 0);
    CHECK(failure_of([] { load(); }) == StatusCode::load_failed);
  });
}

TEST("gpu guard: a lane is guarded as its model is") {
  apart([] {
    auto model = load();
    const auto make_lane = model->lane_factory();
    auto lane = make_lane();
    auto other = make_lane();
    g_freed = 0;
    g_failure = kMemory;
    CHECK(failure_of([&] { make_lane(); }) == StatusCode::out_of_memory);
    CHECK(g_freed == 1);
    CHECK(code_of(*lane) == StatusCode::out_of_memory);
    g_failure = nullptr;
    CHECK(code_of(*lane) == StatusCode::inference_failed);
    CHECK(other->transcribe({}, {}, CancelToken()).size() == 1);
    CHECK(model->transcribe({}, {}, CancelToken()).size() == 1);
    g_freed = 0;
    g_failure = kSticky;
    g_fails_when_freed = true;
    CHECK(code_of(*other) == StatusCode::inference_failed);
    g_failure = nullptr;
    CHECK(code_of(*model) == StatusCode::inference_failed);
    CHECK(failure_of([&] { make_lane(); }) == StatusCode::load_failed);
    lane.reset();
    other.reset();
    model.reset();
    CHECK(g_freed == 0);
  });
}

TEST("gpu guard: a failure while loading frees nothing") {
  apart([] {
    g_failure = kSticky;
    g_fails_when_freed = true;
    CHECK(failure_of([] { load(); }) == StatusCode::load_failed);
    CHECK(g_freed == 0);
  });
}

TEST("gpu guard: a model that cannot be freed is kept, and the GPU counts as lost") {
  apart([] {
    auto model = load();
    g_fails_when_freed = true;
    model.reset();
    g_failure = nullptr;
    CHECK(failure_of([] { load(); }) == StatusCode::load_failed);
  });
}

TEST("gpu guard: a lack of memory is out_of_memory and frees the model, and the GPU is used again") {
  apart([] {
    auto model = load("cuda:1");
    const auto other = load();
    g_freed = 0;
    g_failure = kMemory;
    CHECK(code_of(*model) == StatusCode::out_of_memory);
    CHECK(g_freed == 2); // the memory of the call and the weights
    g_failure = nullptr;
    CHECK(code_of(*model) == StatusCode::inference_failed);
    CHECK(other->transcribe({}, {}, CancelToken()).size() == 1);
    CHECK(load()->transcribe({}, {}, CancelToken()).size() == 1);
  });
}

TEST("gpu guard: cuBLAS without memory is out_of_memory, too") {
  apart([] {
    for (const auto failure : {kMemoryOfCublas, kNoHandleOfCublas}) {
      const auto model = load();
      g_failure = failure;
      CHECK(code_of(*model) == StatusCode::out_of_memory);
      g_failure = nullptr;
      CHECK(load()->transcribe({}, {}, CancelToken()).size() == 1);
    }
  });
}

TEST("gpu guard: a lack of memory while loading is out_of_memory, also when the library says otherwise") {
  apart([] {
    for (const auto factory : {load_failing, load_swallowing}) {
      g_freed = 0;
      g_failure = kMemory;
      CHECK(failure_of([&] { load("cuda:1", factory); }) == StatusCode::out_of_memory);
      CHECK(g_freed == 1);
      g_failure = nullptr;
      CHECK(load()->transcribe({}, {}, CancelToken()).size() == 1);
    }
  });
}

TEST("gpu guard: a GPU that fails while a lack of memory is cleared up is lost") {
  apart([] {
    const auto model = load();
    g_failure = kMemory;
    g_fails_when_freed = true;
    CHECK(code_of(*model) != StatusCode::closed);
    g_failure = nullptr;
    CHECK(failure_of([] { load(); }) == StatusCode::load_failed);
  });
}

TEST("gpu guard: an exception of the backend itself goes through, and the backend stays usable") {
  const auto model = load();
  CancelToken cancelled;
  cancelled.cancel();
  CHECK(failure_of([&] { model->detect_language({}, {}, cancelled); }) == StatusCode::cancelled);
  CHECK(model->detect_language({}, {}, CancelToken()).size() == 1);
}

namespace {

// A GPU as ggml's registry sees it, which fails when it is asked for its memory.
ggml_backend_reg g_registry{};
ggml_backend_device g_device{};

void register_failing_gpu() {
  g_device.iface.get_name = [](ggml_backend_dev_t) { return "CUDA0"; };
  g_device.iface.get_description = [](ggml_backend_dev_t) { return "A GPU in another's use"; };
  g_device.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_GPU; };
  g_device.iface.get_memory = [](ggml_backend_dev_t, size_t* free, size_t* total) {
    end_as_ggml_does();
    *free = *total = size_t{1} << 30;
  };
  g_device.reg = &g_registry;
  g_registry.api_version = GGML_BACKEND_API_VERSION;
  g_registry.iface.get_name = [](ggml_backend_reg_t) { return "CUDA"; };
  g_registry.iface.get_device_count = [](ggml_backend_reg_t) { return size_t{1}; };
  g_registry.iface.get_device = [](ggml_backend_reg_t, size_t) { return &g_device; };
  ggml_backend_register(&g_registry);
}

size_t gpus_told() {
  size_t count = 0;
  for (const auto& device : engine_info().devices)
    count += device.gpu ? 1 : 0;
  return count;
}

} // namespace

TEST("gpu guard: a GPU that cannot tell its memory is left out, and ends nothing") {
  apart([] {
    register_failing_gpu();
    CHECK(gpus_told() == 1);
    g_failure = "CUDA-capable device(s) is/are busy or unavailable";
    CHECK(gpus_told() == 0);
    CHECK(failure_of([] { load(); }) == StatusCode::load_failed);
  });
}
