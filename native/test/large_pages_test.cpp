#include "harness.h"

#include "backends/pages.h"

#ifdef __linux__
#include <fstream>
#include <sstream>
#include <sys/mman.h>

using namespace voxgate;
using namespace voxgate::test;

namespace {

// Tells whether the kernel was advised to put large pages under this address, by the flag "hg" of its
// mapping.
bool is_advised(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    if (fields >> std::hex >> begin >> dash >> end && dash == '-')
      inside = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    else if (inside && line.starts_with("VmFlags:"))
      return line.find(" hg") != std::string::npos;
  }
  return false;
}

} // namespace

TEST("large pages: whole pages inside the memory are advised, and none outside") {
  constexpr size_t kSize = 8 << 20;
  auto* begin =
      static_cast<char*>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(begin != MAP_FAILED);
  if (madvise(begin, 4096, MADV_HUGEPAGE) != 0)
    throw Skipped{"this kernel has no transparent large pages"};
  madvise(begin, 4096, MADV_NOHUGEPAGE);
  ask_for_large_pages(begin + (2 << 20) + 1, 4 << 20);
  CHECK(!is_advised(begin) && !is_advised(begin + (2 << 20)) && !is_advised(begin + (7 << 20)));
  CHECK(is_advised(begin + (3 << 20)));
  ask_for_large_pages(begin, 100); // less than a page
  CHECK(!is_advised(begin));
  munmap(begin, kSize);
}
#endif
