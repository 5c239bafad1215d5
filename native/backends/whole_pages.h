#pragma once

#ifdef __linux__

#include <cstddef>
#include <cstdint>
#include <unistd.h>

namespace voxgate {

// The whole pages inside of some memory, which are all that madvise (2) takes. There may be none.
struct Pages {
  std::byte* begin;
  size_t bytes;
};

inline Pages whole_pages(void* begin, size_t bytes) noexcept {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto first = (address + page - 1) / page * page;
  const auto end = (address + bytes) / page * page;
  return {static_cast<std::byte*>(begin) + (first - address), first < end ? end - first : 0};
}

} // namespace voxgate

#endif
