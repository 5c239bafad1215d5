#include "binding/worker.h"

#include <utility>
#include <vector>
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

Worker::Worker()
    : thread_([this] {
        let_the_event_loop_go_first();
        work();
      }) {}

Worker::~Worker() {
  stop([] {});
  join();
}

void Worker::submit(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_)
      task.cancel->close();
    else
      queue_.push_back(std::exchange(task, {}));
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

void Worker::stop(std::function<void()> last) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_)
      return;
    stopped_ = true;
    if (running_)
      running_->close();
    for (auto& task : queue_)
      task.cancel->close();
    queue_.push_back({std::make_shared<CancelToken>(), std::move(last)});
  }
  wake_.notify_one();
}

void Worker::join() {
  if (thread_.joinable())
    thread_.join();
}

void Worker::work() {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      running_.reset();
      wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
      if (queue_.empty())
        return;
      task = std::move(queue_.front());
      queue_.pop_front();
      running_ = task.cancel;
    }
    task.run();
  }
}

} // namespace voxgate
