#pragma once

#ifdef __linux__
#include "harness.h"

#include <cstddef>
#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace voxgate::test {

// Counts the whole pages of this memory that the process holds.
inline size_t resident_pages(void* begin, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto skipped = (page - reinterpret_cast<uintptr_t>(begin) % page) % page;
  std::vector<unsigned char> resident(bytes < skipped ? 0 : (bytes - skipped) / page);
  CHECK(mincore(static_cast<std::byte*>(begin) + skipped, resident.size() * page, resident.data()) == 0);
  size_t count = 0;
  for (const auto flags : resident)
    count += flags & 1U;
  return count;
}

} // namespace voxgate::test
#endif
