#include "backends/spare_pages.h"

#include "backends/whole_pages.h"

#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace voxgate {

void give_back_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) noexcept {
#ifdef __linux__
  if (const auto pages = whole_pages(begin, bytes); pages.bytes > 0)
    static_cast<void>(madvise(pages.begin, pages.bytes, MADV_DONTNEED));
#endif
}

void clear_memory(void* begin, size_t bytes) noexcept {
#ifdef __linux__
  const auto pages = whole_pages(begin, bytes);
  if (pages.bytes > 0 && madvise(pages.begin, pages.bytes, MADV_DONTNEED) == 0) {
    auto* const first = static_cast<std::byte*>(begin);
    std::memset(first, 0, static_cast<size_t>(pages.begin - first));
    auto* const behind = pages.begin + pages.bytes;
    std::memset(behind, 0, static_cast<size_t>(first + bytes - behind));
    return;
  }
#endif
  std::memset(begin, 0, bytes);
}

} // namespace voxgate
