#pragma once

#include <cstddef>

namespace voxgate {

// Gives the whole pages of this memory back to the system. They read as zero, and are fetched again when they
// are written. On a system that cannot do this, nothing happens and the contents stay.
void give_back_pages(void* begin, size_t bytes) noexcept;

// Sets this memory to zero, and gives its whole pages back.
void clear_memory(void* begin, size_t bytes) noexcept;

} // namespace voxgate
