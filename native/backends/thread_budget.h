#pragma once

#include <algorithm>
#include <atomic>

namespace voxgate {

// The number of threads a model may use, divided among the lanes that compute at the moment. How many threads
// take part must not change what is computed.
class ThreadBudget {
 public:
  explicit ThreadBudget(int threads) : threads_(std::max(1, threads)) {}

  int threads() const { return threads_; }
  int share() const { return std::max(1, threads_ / std::max(1, busy_.load())); }
  void join() { ++busy_; }
  void leave() { --busy_; }

 private:
  int threads_;
  std::atomic<int> busy_{0};
};

} // namespace voxgate
