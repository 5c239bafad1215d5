#pragma once

#include "cancel.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace voxgate {

// One thread with a queue, for one model or file: native work lasts seconds, and libuv's few pool threads
// also serve the file system and DNS. Everything here is called by the JavaScript thread only.
class Worker {
 public:
  // `run` must not throw and must see to it itself that a token cancelled before it starts ends it at once.
  struct Task {
    std::shared_ptr<CancelToken> cancel;
    std::function<void()> run;
  };

  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  void submit(Task task);

  // Ends tasks that were cancelled while they still waited, without waiting for the one that runs.
  void sweep();

  // Closes every task, runs them so that they report it, then `last` on the thread, which ends. Returns at
  // once; only the first call acts.
  void stop(std::function<void()> last);

  // Waits for the thread. Never call it from the thread itself.
  void join();

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  std::shared_ptr<CancelToken> running_;
  bool stopped_ = false;
  std::thread thread_; // last: it uses all of the above
};

} // namespace voxgate
