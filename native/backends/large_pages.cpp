#include "backends/large_pages.h"

#ifdef __linux__
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace voxgate {

namespace {

#ifdef __linux__
// It is advice, so a refusal is no failure.
void advise(void* begin, size_t bytes, int advice) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto skipped = (address + page - 1) / page * page - address;
  if (bytes < skipped + page)
    return;
  const auto whole = (bytes - skipped) / page * page;
  static_cast<void>(madvise(static_cast<std::byte*>(begin) + skipped, whole, advice));
}
#endif

} // namespace

void ask_for_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  advise(begin, bytes, MADV_HUGEPAGE);
#endif
}

void refuse_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  advise(begin, bytes, MADV_NOHUGEPAGE);
#endif
}

} // namespace voxgate
