#include "binding/helper_threads.h"

#include "status.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace voxgate {
namespace {

// Threads for decoders, lanes and ffmpeg, which may start meanwhile.
constexpr int kSpare = 8;

// Starts `count` threads and a few more at the same time. They have ended when the function returns. Throws
// Failure{out_of_memory} if the system refuses one.
void require_threads(int count) {
  std::mutex mutex;
  std::condition_variable wake;
  bool counted = false;
  bool refused = false;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count + kSpare));
  try {
    for (int i = 0; i < count + kSpare; ++i) {
      threads.emplace_back([&] {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&counted] { return counted; });
      });
    }
  } catch (const std::exception&) { // std::system_error or std::bad_alloc
    refused = true;
  }
  {
    const std::lock_guard lock(mutex);
    counted = true;
  }
  wake.notify_all();
  for (auto& thread : threads)
    thread.join();
  if (refused)
    throw Failure(StatusCode::out_of_memory, "The system refuses the threads that the model needs");
}

} // namespace

void start_helper_threads(int threads) {
  if (threads < 2)
    return;
  // Lanes that start at the same time ask one after the other, so that what they ask for never adds up.
  static std::mutex asking;
  const std::lock_guard lock(asking);
  require_threads(threads - 1);
#ifdef _OPENMP
  std::atomic<int> members{0}; // without it the compiler would remove the empty region
#pragma omp parallel num_threads(threads)
  ++members;
#endif
}

} // namespace voxgate
