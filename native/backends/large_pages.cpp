#include "backends/large_pages.h"

#ifdef __linux__
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace voxgate {

void ask_for_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto skipped = (address + page - 1) / page * page - address;
  if (bytes < skipped + page)
    return;
  const auto whole = (bytes - skipped) / page * page;
  // It is advice, so a refusal is no failure.
  static_cast<void>(madvise(static_cast<std::byte*>(begin) + skipped, whole, MADV_HUGEPAGE));
#endif
}

} // namespace voxgate
