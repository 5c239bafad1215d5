#pragma once

#include "ggml.h"

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

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

// A block of working memory for each thread, which is made where the thread first needs it, and holds nothing
// then. As a plain thread_local it would be a part of every thread of the process, those that compute nothing
// too. Without memory for it the process ends: the other threads compute a part of the result only.
template <typename Block> Block& thread_block() {
  static_assert(std::is_trivial_v<Block> && alignof(Block) <= 64);
  static thread_local ThreadMemory memory;
  void* const block = memory.of(sizeof(Block));
  if (block == nullptr)
    GGML_ABORT("no memory for the working memory of a kernel");
  return *static_cast<Block*>(block);
}

} // namespace voxgate
