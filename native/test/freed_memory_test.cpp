#include "harness.h"
#include "resident_pages.h"

#include "backends/pages.h"
#include "freed_memory.h"

#ifdef __linux__
#include <algorithm>
#include <cstddef>
#include <sys/mman.h>
#include <unistd.h>

using namespace voxgate;
using namespace voxgate::test;

TEST("spare pages: the whole pages inside the memory are given back, and what lies around them stays") {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size = 8 * page;
  auto* begin = static_cast<std::byte*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  CHECK(begin != MAP_FAILED);
  for (size_t i = 0; i < size; ++i)
    begin[i] = std::byte{1};
  CHECK(resident_pages(begin, size) == 8);
  give_back_pages(begin + 1, page / 2); // no whole page
  give_back_pages(begin, 0);
  CHECK(resident_pages(begin, size) == 8);
  give_back_pages(begin + page + 1, 4 * page); // the first and the last page in part
  CHECK(resident_pages(begin, size) == 5);
  CHECK(begin[page] == std::byte{1} && begin[2 * page] == std::byte{0} && begin[5 * page] == std::byte{1});
  std::fill_n(begin, size, std::byte{1});
  clear_memory(begin + page - 10, 2 * page + 20);
  CHECK(resident_pages(begin, size) == 6);
  CHECK(std::count(begin, begin + size, std::byte{0}) == static_cast<ptrdiff_t>(2 * page + 20));
  CHECK(begin[page - 11] == std::byte{1} && begin[page - 10] == std::byte{0});
  munmap(begin, size);
}
#endif
