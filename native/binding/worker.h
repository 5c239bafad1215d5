#pragma once

#include "cancel.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace voxgate {

// A queue of tasks and the threads that run them. A model has one thread, and all audio files share a few.
// They do not use libuv's few pool threads, because native work lasts seconds and those also serve the file
// system and DNS. Only the JavaScript thread and tasks may call these functions.
class Worker {
 public:
  // `run` reports its failures itself. It must end at once if its token was cancelled before it started.
  struct Task {
    std::shared_ptr<CancelToken> cancel;
    std::function<void()> run;
  };

  // A thread starts when a task finds no idle thread.
  explicit Worker(size_t max_threads = 1);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // Throws Failure{out_of_memory} and drops the task if the system refuses the first thread. If it refuses a
  // further thread, the existing threads do all of the work.
  void submit(Task task);

  // Ends the waiting tasks that were cancelled, without waiting for the running ones.
  void sweep();

  // Closes every task and runs the waiting ones, so that they report it. Then `last` runs on the last thread,
  // and all threads end. stop() itself returns at once, but if no thread was ever started, it runs `last`
  // first. Only the first call has an effect.
  void stop(std::function<void()> last) noexcept;

  // Waits for the threads. It must not be called on one of them.
  void join();

 private:
  void start_thread();
  void work(size_t index);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  std::vector<std::shared_ptr<CancelToken>> running_; // the token of each thread; null while it waits
  std::function<void()> last_;
  size_t idle_ = 0;
  size_t ended_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_; // must be last, because the threads use all members above
};

} // namespace voxgate
