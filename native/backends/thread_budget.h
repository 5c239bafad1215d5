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

  // One lane computes for as long as this lives.
  class Turn {
   public:
    explicit Turn(ThreadBudget& budget) : budget_(budget) { ++budget_.busy_; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { --budget_.busy_; }

    // Of this lane, now: it changes whenever another one starts or ends.
    int threads() const { return std::max(1, budget_.threads_ / std::max(1, budget_.busy_.load())); }

   private:
    ThreadBudget& budget_;
  };

 private:
  int threads_;
  std::atomic<int> busy_{0};
};

} // namespace voxgate
