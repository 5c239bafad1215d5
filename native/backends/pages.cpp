#include "backends/pages.h"

#include <cstdint>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace voxgate {

namespace {

// There may be none.
struct Pages {
  std::byte* begin;
  size_t bytes;
};

#ifdef __linux__

enum class Advice { large = MADV_HUGEPAGE, small = MADV_NOHUGEPAGE, unused = MADV_DONTNEED };

Pages whole_pages(void* begin, size_t bytes) noexcept {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto first = (address + page - 1) / page * page;
  const auto end = (address + bytes) / page * page;
  return {static_cast<std::byte*>(begin) + (first - address), first < end ? end - first : 0};
}

bool advise(const Pages& pages, Advice advice) noexcept {
  return pages.bytes > 0 && madvise(pages.begin, pages.bytes, static_cast<int>(advice)) == 0;
}

#else

enum class Advice { large, small, unused };

Pages whole_pages(void* begin, size_t) noexcept {
  return {static_cast<std::byte*>(begin), 0};
}

bool advise(const Pages&, Advice) noexcept {
  return false;
}

#endif

} // namespace

void ask_for_large_pages(void* begin, size_t bytes) {
  advise(whole_pages(begin, bytes), Advice::large);
}

bool ask_for_large_pages(ggml_backend_buffer_t buffer) {
  if (buffer == nullptr || !ggml_backend_buffer_is_host(buffer))
    return false;
  ask_for_large_pages(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  return true;
}

void refuse_large_pages(void* begin, size_t bytes) {
  advise(whole_pages(begin, bytes), Advice::small);
}

void give_back_pages(void* begin, size_t bytes) noexcept {
  advise(whole_pages(begin, bytes), Advice::unused);
}

void clear_memory(void* begin, size_t bytes) noexcept {
  const auto pages = whole_pages(begin, bytes);
  if (!advise(pages, Advice::unused)) {
    std::memset(begin, 0, bytes);
    return;
  }
  auto* const first = static_cast<std::byte*>(begin);
  auto* const behind = pages.begin + pages.bytes;
  std::memset(first, 0, static_cast<size_t>(pages.begin - first));
  std::memset(behind, 0, static_cast<size_t>(first + bytes - behind));
}

} // namespace voxgate
