#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace voxgate {

// Working memory that a thread keeps from one graph to the next, aligned to a line of the cache.
class ThreadMemory {
 public:
  // Returns room for `bytes`, which holds nothing of before, or null where there is no memory.
  void* of(size_t bytes) {
    if (capacity_ < bytes) {
      memory_.reset();
      const size_t lines = (bytes + kLine - 1) / kLine * kLine;
      memory_.reset(std::aligned_alloc(kLine, lines));
      capacity_ = memory_ ? lines : 0;
    }
    return memory_.get();
  }

 private:
  static constexpr size_t kLine = 64;
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  size_t capacity_ = 0;
};

} // namespace voxgate
