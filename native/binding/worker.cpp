#include "binding/worker.h"

#include <system_error>
#include <utility>
#ifdef __linux__
#include <sys/resource.h>
#endif

namespace voxgate {

namespace {

// Inference takes every core for seconds; the event loop needs a moment of one now and then, to refuse, to
// stream, to notice who left. A little niceness lets it go first, and costs inference little beside other
// programs. On Linux niceness is a thread's own, and what the thread starts (ggml's helpers) inherits it.
void let_the_event_loop_go_first() {
#ifdef __linux__
  constexpr int kStep = 3;
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kStep);
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

// Under the lock.
void Worker::start_thread() {
  try {
    threads_.emplace_back([this, index = threads_.size()] {
      let_the_event_loop_go_first();
      work(index);
    });
  } catch (const std::system_error&) {
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
    } catch (
        ...) { // it reports its failures itself; without the memory for that its thread serves the others
    }
    task = {}; // what it held goes while no lock is held
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
