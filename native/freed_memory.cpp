#include "freed_memory.h"

#ifdef __linux__
#include <malloc.h> // defines __GLIBC__
#endif

#ifdef __GLIBC__
#include <atomic>
#include <chrono>

namespace voxgate {
namespace {

// Smaller blocks are made for every request, and new pages for each of them would cost time. ggml's tables,
// of nearly a megabyte each and mostly unused, are larger.
constexpr int kMappedBytes = 512 << 10;
constexpr int kHeaps = 4;
constexpr int kKeptBytes = 1 << 20; // at the end of a heap
constexpr std::chrono::seconds kPause(5);

} // namespace

void limit_kept_memory() {
  // Without these the limits grow with the blocks that are freed (man 3 mallopt). glibc locks its settings
  // itself. NOLINTBEGIN(concurrency-mt-unsafe)
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_TRIM_THRESHOLD, kKeptBytes);
  mallopt(M_ARENA_MAX, kHeaps);
  // NOLINTEND(concurrency-mt-unsafe)
}

void give_back_freed_memory() noexcept {
  malloc_trim(0);
}

void give_back_freed_memory_at_times() noexcept {
  using Clock = std::chrono::steady_clock;
  static std::atomic<Clock::rep> last{0};
  const auto now = Clock::now().time_since_epoch();
  auto before = last.load();
  if (now - Clock::duration(before) > kPause && last.compare_exchange_strong(before, now.count()))
    malloc_trim(0);
}

} // namespace voxgate

#else

namespace voxgate {
void limit_kept_memory() {}
void give_back_freed_memory() noexcept {}
void give_back_freed_memory_at_times() noexcept {}
} // namespace voxgate

#endif
