#include "apart.h"
#include "failing_gpu.h"
#include "harness.h"

#include "backends/gpu_guard.h"

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

// The lanes of a model are made and freed on threads of their own.

using namespace voxgate;
using namespace voxgate::test;

namespace {

// Waits until `count` is `wanted`. False if it is not within `limit`.
bool reaches(const std::atomic<int>& count, int wanted, std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (count < wanted && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return count >= wanted;
}

// The destructor takes a lock and fails while it holds it, as ggml's CUDA code does. The guard leaves it by a
// jump, so that the lock stays locked.
class Locking final : public Backend {
 public:
  ~Locking() override {
    static std::mutex mutex;
    static std::atomic<int> freeing{0};
    ++freeing;
    reaches(freeing, 2, std::chrono::milliseconds(200));
    const std::lock_guard lock(mutex);
    end_as_ggml_does();
  }
  const ModelInfo& info() const override { return info_; }
  std::vector<Segment> transcribe(std::span<const float>, const ChunkOptions&, const CancelToken&) override {
    return {};
  }
  std::vector<Languages> detect_language(std::span<const float>, const DetectionOptions&,
                                         const CancelToken&) override {
    return {};
  }

 private:
  ModelInfo info_;
};

std::unique_ptr<Backend> load_locking(const LoadOptions&, const CancelToken&) {
  return std::make_unique<Locking>();
}

} // namespace

TEST("gpu guard: models that are freed at once end, also where the first one leaves a lock behind") {
  apart([] {
    const LoadOptions options{"locking", "", "cuda", 1};
    std::array models{load_guarded(load_locking, options, CancelToken()),
                      load_guarded(load_locking, options, CancelToken())};
    g_failure = kSticky;
    std::atomic<int> freed{0};
    for (auto& model : models) {
      std::thread([&model, &freed] {
        model.reset();
        ++freed;
      }).detach();
    }
    CHECK(reaches(freed, 2, std::chrono::seconds(10)));
  });
}

TEST("gpu guard: a model on a GPU has at most 32 threads, and one on the CPU those that it is given") {
  CHECK(threads_on("cuda:1", 512) == 32);
  CHECK(threads_on("vulkan:0", 4) == 4);
  CHECK(threads_on("cpu", 512) == 512);
}
