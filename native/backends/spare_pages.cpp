#include "backends/spare_pages.h"

#ifdef __linux__
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace voxgate {

void give_back_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) noexcept {
#ifdef __linux__
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto first = (address + page - 1) / page * page;
  const auto end = (address + bytes) / page * page;
  if (first < end)
    static_cast<void>(madvise(static_cast<char*>(begin) + (first - address), end - first, MADV_DONTNEED));
#endif
}

} // namespace voxgate
