#include "backends/gpu_guard.h"

#include "status.h"

#include <ggml.h>

#include <cstdio>
#include <mutex>
#include <utility>

namespace voxgate {
namespace {

// How many guarded calls this thread is in. It is enough to know that for the thread of the job: it is the
// one that computes a graph of a GPU.
thread_local int t_guarded = 0;

struct Aborted {
  std::string message;
};

// ggml calls this before it ends the process. Its C files are compiled so that an exception passes through
// them (cmake/ggml.cmake).
void throw_abort(const char* message) {
  if (t_guarded > 0)
    throw Aborted{message};
  std::fprintf(stderr, "%s\n", message);
}

class Guard {
 public:
  Guard() {
    static std::once_flag once;
    std::call_once(once, [] { ggml_set_abort_callback(throw_abort); });
    ++t_guarded;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { --t_guarded; }
};

Failure failure(const Aborted& aborted, StatusCode otherwise) {
  const bool memory = aborted.message.find("out of memory") != std::string::npos;
  return {memory ? StatusCode::out_of_memory : otherwise, "The GPU failed: " + aborted.message};
}

// Keeps the backend for as long as the process runs: no destructor may ask a GPU in an unknown state to free
// anything.
void abandon(std::unique_ptr<Backend> backend) {
  static std::mutex mutex;
  static auto* const abandoned = new std::vector<std::unique_ptr<Backend>>();
  const std::lock_guard lock(mutex);
  abandoned->push_back(std::move(backend));
}

class GuardedBackend final : public Backend {
  Backend& usable() const {
    if (!inner_)
      throw Failure(StatusCode::inference_failed, "The GPU failed in an earlier call");
    return *inner_;
  }

  template <typename Call> auto guarded(Call call) {
    const Guard guard;
    try {
      return call();
    } catch (const Aborted& aborted) {
      abandon(std::move(inner_));
      throw failure(aborted, StatusCode::inference_failed);
    }
  }

 public:
  explicit GuardedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)), info_(inner_->info()) {}

  const ModelInfo& info() const override { return info_; }

  std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                  const ChunkEvents& events, const CancelToken& cancel) override {
    return guarded([&] { return usable().transcribe(samples, options, events, cancel); });
  }

  std::vector<LanguageProbability> detect_language(std::span<const float> samples,
                                                   const DetectionOptions& options,
                                                   const CancelToken& cancel) override {
    return guarded([&] { return usable().detect_language(samples, options, cancel); });
  }

 private:
  std::unique_ptr<Backend> inner_;
  ModelInfo info_;
};

} // namespace

std::unique_ptr<Backend> load_guarded(BackendFactory load, const LoadOptions& options,
                                      const CancelToken& cancel) {
  if (options.device == "cpu")
    return load(options, cancel);
  const Guard guard;
  try {
    return std::make_unique<GuardedBackend>(load(options, cancel));
  } catch (const Aborted& aborted) {
    throw failure(aborted, StatusCode::load_failed);
  }
}

} // namespace voxgate
