// Linked into libvoxgate-ggml-base, because all other libraries of the process that need it are linked to
// that.
#include <cstddef>
#include <cstdlib>
#include <new>

#undef malloc // of throwing_malloc_calls.h
#undef calloc
#undef realloc
#undef posix_memalign

#define VOXGATE_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

thread_local int t_scopes = 0;
thread_local int t_thrown = 0;

void throw_bad_alloc() {
  if (t_scopes == 0)
    return;
  ++t_thrown;
  throw std::bad_alloc();
}

} // namespace

VOXGATE_EXPORT int voxgate_throwing_malloc(int scopes) {
  t_scopes += scopes;
  return t_thrown;
}

#ifdef VOXGATE_THROWING_MALLOC
extern "C" void* __real_malloc(size_t size);
extern "C" void* __real_calloc(size_t count, size_t size);
extern "C" void* __real_realloc(void* block, size_t size);
extern "C" int __real_posix_memalign(void** block, size_t alignment, size_t size);

VOXGATE_EXPORT void* __wrap_malloc(size_t size) {
  void* block = __real_malloc(size);
  if (block == nullptr)
    throw_bad_alloc();
  return block;
}

VOXGATE_EXPORT void* __wrap_calloc(size_t count, size_t size) {
  void* block = __real_calloc(count, size);
  if (block == nullptr)
    throw_bad_alloc();
  return block;
}

VOXGATE_EXPORT void* __wrap_realloc(void* old, size_t size) {
  void* block = __real_realloc(old, size);
  if (block == nullptr && size > 0)
    throw_bad_alloc();
  return block;
}

VOXGATE_EXPORT int __wrap_posix_memalign(void** block, size_t alignment, size_t size) {
  const int error = __real_posix_memalign(block, alignment, size);
  if (error != 0)
    throw_bad_alloc();
  return error;
}
#endif
