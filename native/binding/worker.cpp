#include "binding/worker.h"

#include <cstdint>
#include <exception>
#include <utility>
#ifdef __linux__
#include <sys/resource.h>
#endif
#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace voxgate {

namespace {

// Inference uses every core for seconds, but the event loop needs a core for short moments: to refuse, to
// stream, and to see that a client left. A slightly higher niceness of the workers lets the event loop go
// first, and costs inference little when other programs run. On Linux each thread has its own niceness, which
// the threads that it starts (ggml's helpers) inherit.
void let_the_event_loop_go_first() {
#ifdef __linux__
  constexpr int kStep = 3;
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kStep);
#endif
}

// A sound that fades into silence becomes numbers below 1e-38, with which a processor computes up to fifty
// times as slowly. They are as good as 0. The threads that this one starts inherit it.
void take_denormals_for_zero() {
#if defined(__SSE2__)
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  constexpr uint64_t kFlushToZero = uint64_t{1} << 24;
  uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | kFlushToZero));
#endif
}

} // namespace

Worker::Worker(size_t max_threads) : running_(max_threads) {
  threads_.reserve(max_threads);
}

Worker::~Worker() {
  stop([] {});
  join();
}

// The caller must hold the lock.
void Worker::start_thread() {
  try {
    threads_.emplace_back([this, index = threads_.size()] {
      let_the_event_loop_go_first();
      take_denormals_for_zero();
      work(index);
    });
  } catch (const std::exception&) { // std::system_error or std::bad_alloc
    if (threads_.empty())
      throw Failure(StatusCode::out_of_memory, "The system refuses to start another thread");
  }
}

void Worker::submit(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) {
      task.cancel->close();
    } else {
      if (idle_ <= queue_.size() && threads_.size() < running_.size())
        start_thread();
      queue_.push_back(std::exchange(task, {}));
    }
  }
  if (task.run)
    task.run();
  else
    wake_.notify_one();
}

void Worker::sweep() {
  std::vector<Task> ended;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(queue_, [&ended](Task& task) {
      if (!task.cancel->cancelled())
        return false;
      ended.push_back(std::move(task));
      return true;
    });
  }
  for (auto& task : ended)
    task.run();
}

void Worker::stop(std::function<void()> last) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_)
      return;
    stopped_ = true;
    for (const auto& cancel : running_) {
      if (cancel)
        cancel->close();
    }
    for (auto& task : queue_)
      task.cancel->close();
    if (!threads_.empty())
      last_ = std::exchange(last, {});
  }
  if (last)
    last();
  wake_.notify_all();
}

void Worker::join() {
  for (auto& thread : threads_) {
    if (thread.joinable())
      thread.join();
  }
}

void Worker::work(size_t index) {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    --idle_;
    if (queue_.empty())
      break;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    running_[index] = task.cancel;
    lock.unlock();
    try {
      task.run();
    } catch (...) { // a task reports its failures itself; if it has no memory for that, the thread goes on
    }
    task = {}; // destroys the objects of the task while the lock is not held
    lock.lock();
    running_[index].reset();
  }
  if (++ended_ == threads_.size()) {
    const auto last = std::move(last_);
    lock.unlock();
    last();
  }
}

} // namespace voxgate
