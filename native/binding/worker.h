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

// A queue and the threads that work it off: one for a model, a few that all audio files share. Native work
// lasts seconds, and libuv's few pool threads also serve the file system and DNS. Everything here is called
// by the JavaScript thread or by a task.
class Worker {
 public:
  // `run` reports its failures itself and must see to it itself that a token cancelled before it starts ends
  // it at once.
  struct Task {
    std::shared_ptr<CancelToken> cancel;
    std::function<void()> run;
  };

  // A thread is started when a task finds none idle.
  explicit Worker(size_t max_threads = 1);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  // Throws Failure{out_of_memory} when there is no thread and the system refuses the first; the task is
  // dropped. It refuses more without an error: then those that are there do all of the work.
  void submit(Task task);

  // Ends tasks that were cancelled while they still waited, without waiting for those that run.
  void sweep();

  // Closes every task, runs them so that they report it, then `last` on the last thread, which ends. Where no
  // thread was ever started, `last` runs at once. Otherwise returns at once; only the first call acts.
  void stop(std::function<void()> last) noexcept;

  // Waits for the threads. Never call it from one of them.
  void join();

 private:
  void start_thread();
  void work(size_t index);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  std::vector<std::shared_ptr<CancelToken>> running_; // by thread; empty while it waits
  std::function<void()> last_;
  size_t idle_ = 0;
  size_t ended_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_; // last: they use all of the above
};

} // namespace voxgate
