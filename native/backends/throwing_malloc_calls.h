#pragma once

// Included before everything else into the sources of the libraries that call malloc. The C library promises
// that its malloc throws nothing, and compilers rely on that: they make no way for an exception through a
// function that calls it, and leave out what is stored before a call only for the case that it throws.
#ifdef __cplusplus
#include <cstdlib>
#include <memory> // for the patched ggml-backend.cpp
#else
#include <stdlib.h>
#endif

#ifdef VOXGATE_THROWING_MALLOC
#ifdef __cplusplus
extern "C" {
#endif
void* __wrap_malloc(size_t size); // throwing_malloc.cpp
void* __wrap_calloc(size_t count, size_t size);
void* __wrap_realloc(void* block, size_t size);
int __wrap_posix_memalign(void** block, size_t alignment, size_t size);
#ifdef __cplusplus
}
#endif

#define malloc(size) __wrap_malloc(size)
#define calloc(count, size) __wrap_calloc(count, size)
#define realloc(block, size) __wrap_realloc(block, size)
#define posix_memalign(block, alignment, size) __wrap_posix_memalign(block, alignment, size)
#endif
