#include "backends/large_pages.h"

#include "backends/whole_pages.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace voxgate {

namespace {

#ifdef __linux__
// It is advice, so a refusal is no failure.
void advise(void* begin, size_t bytes, int advice) {
  if (const auto pages = whole_pages(begin, bytes); pages.bytes > 0)
    static_cast<void>(madvise(pages.begin, pages.bytes, advice));
}
#endif

} // namespace

void ask_for_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  advise(begin, bytes, MADV_HUGEPAGE);
#endif
}

bool ask_for_large_pages(ggml_backend_buffer_t buffer) {
  if (buffer == nullptr || !ggml_backend_buffer_is_host(buffer))
    return false;
  ask_for_large_pages(ggml_backend_buffer_get_base(buffer), ggml_backend_buffer_get_size(buffer));
  return true;
}

void refuse_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#ifdef __linux__
  advise(begin, bytes, MADV_NOHUGEPAGE);
#endif
}

} // namespace voxgate
