#pragma once

#include <cstddef>

namespace voxgate {

// Asks for large pages under memory that was just allocated and not yet written. For what is read from end to
// end over and over: a processor's prefetching ends with the page, so that 52 MB of weights took 3.0 ms in
// pages of 4 KB and take 2.4 ms in those of 2 MB. Where the system has none, nothing changes.
void ask_for_large_pages(void* begin, size_t bytes);

} // namespace voxgate
