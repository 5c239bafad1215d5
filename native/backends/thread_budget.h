#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

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
    explicit Turn(ThreadBudget& budget) : budget_(budget), place_(budget.take_place()) {}
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { budget_.taken_.fetch_and(~place_); }

    // Of this lane, now: it changes whenever another one starts or ends. Together the lanes have all threads;
    // those that are left over by an even division go to the first lanes, one to each.
    int threads() const {
      const uint64_t taken = budget_.taken_.load();
      const int lanes = std::popcount(taken);
      if (place_ == 0 || lanes == 0)
        return 1;
      const int before = std::popcount(taken & (place_ - 1));
      return std::max(1, budget_.threads_ / lanes + (before < budget_.threads_ % lanes ? 1 : 0));
    }

   private:
    ThreadBudget& budget_;
    uint64_t place_; // one bit of taken_; none for a lane that found no place
  };

 private:
  uint64_t take_place() {
    uint64_t taken = taken_.load();
    while (~taken != 0) {
      const uint64_t lowest_free = ~taken & (taken + 1);
      if (taken_.compare_exchange_weak(taken, taken | lowest_free))
        return lowest_free;
    }
    return 0;
  }

  int threads_;
  std::atomic<uint64_t> taken_{0}; // a bit for each lane that computes
};

} // namespace voxgate
