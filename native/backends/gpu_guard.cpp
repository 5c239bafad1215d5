#include "backends/gpu_guard.h"

#include "status.h"

#include <ggml.h>

#include <array>
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

namespace voxgate {
namespace {

using Text = std::array<char, 512>; // no memory is asked for on the way out

// A call under guard, on the stack of its thread: the thread of the job is the one that computes a graph of a
// GPU.
struct Call {
  Call* outer;
  bool throws; // false for a destructor, through which nothing can be thrown
  int exceptions = std::uncaught_exceptions();
  bool out_of_memory = false;
  Text reason{};
  std::jmp_buf way_out{};
};

struct OutOfMemory {};

std::atomic<bool> g_lost{false};
// Held while a model or a lane is made or freed. ggml's CUDA code does both with locks of its own, and a
// thread that leaves by a jump never unlocks them: no other thread may wait for them then.
std::mutex g_making_or_freeing;
constinit thread_local Call* t_call = nullptr;
constinit thread_local Text t_error{};
std::atomic<ggml_abort_callback_t> g_abort_before{nullptr};

// What the result of a Vulkan call says (VkResult in the specification of Vulkan). The category is that of
// vulkan.hpp in ggml's library.
bool is_vulkan(const std::system_error& error) {
  return std::string_view(error.code().category().name()) == "vk::Result";
}
bool is_lack_of_memory(const std::system_error& error) {
  constexpr int kOutOfHostMemory = -1, kOutOfDeviceMemory = -2, kOutOfPoolMemory = -1000069000;
  const int result = error.code().value();
  return result == kOutOfHostMemory || result == kOutOfDeviceMemory || result == kOutOfPoolMemory;
}

void copy(std::string_view from, Text& to) {
  to[from.copy(to.data(), to.size() - 1)] = '\0';
}

// ggml logs "CUDA error: out of memory" and then aborts with "file:line: CUDA error".
std::string_view reason_of(std::string_view message) {
  const std::string_view logged = t_error.data();
  const auto name = message.substr(0, message.find_last_not_of('\n') + 1);
  const bool reason_is_logged = name.ends_with(" error") && !logged.empty();
  return reason_is_logged ? logged : message;
}

// The last two are cuBLAS's, which says the second one of them where it has no memory for a handle.
bool is_out_of_memory(std::string_view reason) {
  return reason.ends_with("error: out of memory") ||
         reason.ends_with("error: the resource allocation failed") ||
         reason.ends_with("error: the library was not initialized");
}

// ggml calls this before it ends the process. Its C files are compiled so that an exception passes through
// them (cmake/ggml.cmake).
void leave_abort(const char* message) {
  Call* call = t_call;
  if (call == nullptr) {
    if (const auto before = g_abort_before.load())
      before(message);
    else
      std::fprintf(stderr, "%s\n", message);
    return;
  }
  const auto reason = reason_of(message);
  copy(reason, call->reason);
  if (is_out_of_memory(reason) && call->throws && std::uncaught_exceptions() == call->exceptions) {
    call->out_of_memory = true;
    throw OutOfMemory{};
  }
  g_lost.store(true);
  // The language does not define a jump over destructors that should run. Compilers do what is wanted here:
  // those frames are forgotten with all they own.
  std::longjmp(call->way_out, 1); // NOLINT(bugprone-*,cert-*): an exception would run destructors
}

// Runs `action` and returns true; false if the GPU was lost in it. An OutOfMemory passes through where the
// call throws.
bool survives(Call& call, const std::function<void()>& action) {
  struct Current {
    explicit Current(Call& current) : before(std::exchange(t_call, &current)) { t_error = {}; }
    ~Current() { t_call = before; }
    Call* before;
  };
  // Each time, because another listener may have taken the place in between.
  if (const auto before = ggml_set_abort_callback(leave_abort); before != leave_abort)
    g_abort_before = before;
  const Current current(call);
  if (setjmp(call.way_out) != 0) // NOLINT(bugprone-*,cert-*)
    return false;
  try {
    action();
  } catch (const std::system_error& error) {
    if (!is_vulkan(error))
      throw;
    copy(error.what(), call.reason);
    call.out_of_memory = is_lack_of_memory(error);
    if (call.out_of_memory)
      throw OutOfMemory{};
    g_lost.store(true);
    return false;
  }
  return true;
}

Failure failure(const Call& call, StatusCode otherwise) {
  return {call.out_of_memory ? StatusCode::out_of_memory : otherwise,
          std::string("The GPU failed: ") + call.reason.data()};
}

// Keeps a backend for as long as the process runs.
void abandon(Backend* backend) {
  static std::mutex mutex;
  static auto* const abandoned = new std::vector<Backend*>();
  const std::lock_guard lock(mutex);
  abandoned->push_back(backend);
}

std::unique_ptr<Backend> guarded_from(const LaneFactory& make);

class GuardedBackend final : public Backend {
 public:
  explicit GuardedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)), info_(inner_->info()) {}
  ~GuardedBackend() override { release(); }

  const ModelInfo& info() const override { return info_; }

  LaneFactory lane_factory() const override {
    const auto make_lane = inner_ ? inner_->lane_factory() : LaneFactory();
    return make_lane ? [make_lane] { return guarded_from(make_lane); } : LaneFactory();
  }

  std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                  const CancelToken& cancel) override {
    std::vector<Segment> result;
    guarded([&] { result = inner_->transcribe(samples, options, cancel); });
    return result;
  }

  std::vector<Languages> detect_language(std::span<const float> samples, const DetectionOptions& options,
                                         const CancelToken& cancel) override {
    std::vector<Languages> result;
    guarded([&] { result = inner_->detect_language(samples, options, cancel); });
    return result;
  }

 private:
  void guarded(const std::function<void()>& action) {
    if (!inner_ || g_lost)
      throw Failure(StatusCode::inference_failed, "The GPU failed in an earlier call");
    Call call{t_call, true};
    bool survived = false;
    try {
      survived = survives(call, action);
    } catch (const OutOfMemory&) {
      release();
      throw failure(call, StatusCode::inference_failed);
    }
    if (survived)
      return;
    release();
    throw failure(call, StatusCode::inference_failed);
  }

  void release() noexcept {
    Backend* inner = inner_.release();
    if (inner == nullptr)
      return;
    const std::lock_guard lock(g_making_or_freeing);
    Call call{t_call, false};
    if (g_lost || !survives(call, [inner] { delete inner; }))
      abandon(inner);
  }

  std::unique_ptr<Backend> inner_;
  ModelInfo info_;
};

// A model, or a lane of one, behind the guard. Throws Failure{out_of_memory} or Failure{load_failed} where
// the GPU fails.
std::unique_ptr<Backend> guarded_from(const LaneFactory& make) {
  const std::lock_guard lock(g_making_or_freeing);
  if (g_lost)
    throw Failure(StatusCode::load_failed, "The GPU failed in an earlier call");
  Call call{t_call, true};
  std::unique_ptr<Backend> made;
  bool survived = false;
  try {
    survived = survives(call, [&] { made = make(); });
  } catch (...) {
    // A library may turn the exception into another failure.
    if (call.out_of_memory)
      throw failure(call, StatusCode::load_failed);
    throw;
  }
  if (!survived)
    throw failure(call, StatusCode::load_failed);
  return std::make_unique<GuardedBackend>(std::move(made));
}

} // namespace

void note_gpu_error(const char* line) {
  const std::string_view text = line;
  if (t_call != nullptr && text.find(" error: ") != std::string_view::npos)
    copy(text.substr(0, text.find_last_not_of('\n') + 1), t_error);
}

bool ask_gpu(const std::function<void()>& question) {
  if (g_lost)
    return false;
  Call call{t_call, true};
  try {
    return survives(call, question);
  } catch (const OutOfMemory&) {
    return false;
  }
}

std::unique_ptr<Backend> load_guarded(BackendFactory load, const LoadOptions& options,
                                      const CancelToken& cancel) {
  if (options.device == "cpu")
    return load(options, cancel);
  return guarded_from([&] { return load(options, cancel); });
}

} // namespace voxgate
