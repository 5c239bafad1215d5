#pragma once

namespace voxgate {

// What is freed must go back to the system. By itself the GNU C library keeps most of it: it has up to eight
// heaps a core for its threads, and once a large block was freed, blocks of up to 32 MB come from these heaps
// instead of the system. After a few loads and unloads they held 589 MB of free memory.
//
// With another C library none of these functions does anything.

// Lets blocks of half a megabyte and more come from the system and go back to it, and limits the number of
// heaps. Call this once, before there are many threads.
void limit_kept_memory();

// Gives back what the heaps hold for later: 10 MB of free blocks between others in 1.7 ms (Intel Xeon), in
// which other threads may wait for memory. What is given back has to be fetched again when it is needed, 0.4
// ms a megabyte. So call it only when much was freed.
void give_back_freed_memory() noexcept;

// The same, if the last time is some seconds ago. Call this after work that may have freed something.
void give_back_freed_memory_at_times() noexcept;

} // namespace voxgate
