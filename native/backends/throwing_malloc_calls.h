#pragma once

// Included before everything else into the C++ sources of the libraries that call malloc. The C library
// promises that its malloc throws nothing, so a compiler makes no way for an exception through a function
// that calls it.
#include <cstdlib>
#include <memory> // for the patched ggml-backend.cpp

#ifdef VOXGATE_THROWING_MALLOC

extern "C" void* __wrap_malloc(size_t size); // throwing_malloc.cpp
extern "C" void* __wrap_calloc(size_t count, size_t size);
extern "C" void* __wrap_realloc(void* block, size_t size);

#define malloc(size) __wrap_malloc(size)
#define calloc(count, size) __wrap_calloc(count, size)
#define realloc(block, size) __wrap_realloc(block, size)
#endif
