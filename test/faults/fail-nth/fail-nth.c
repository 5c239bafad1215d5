/* Preloaded into a gateway, this library fails one chosen call of the system, as SQLite's tests do: the first one, then
 * the second one, and so on until the work needs no more of them. The file named by VOXGATE_FAIL_NTH holds a `struct
 * control`, which the test reads and writes while the gateway runs (injector.ts knows its layout).
 *
 * Node and V8 end the process when they get no memory, and glibc and GNU's OpenMP runtime do so for some of their own.
 * So allocations and mappings fail for the addon and the libraries beside it only, and on threads that these started for
 * the C++ library as well. Files fail for the whole process, and sockets and pipes never do. The test reads the size of
 * what the addon has allocated and not freed, so that a leak shows. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { MEMORY = 1, THREAD = 2, OPEN = 4, WRITE = 8, SYNC = 16, MAP = 32 };

struct control {
  _Atomic int32_t kinds;   /* which calls are counted; 0: none */
  _Atomic int32_t first;   /* the first call that fails, from 1; 0: none */
  _Atomic int32_t last;    /* the last call that fails */
  _Atomic int32_t calls;   /* calls since the count was set to 0 */
  _Atomic int32_t failed;  /* those that failed */
  _Atomic int32_t blocks;  /* allocations of the addon that are not freed */
  _Atomic int64_t bytes;   /* and their size */
};

static struct control *control;
static int shows_place; /* VOXGATE_FAIL_PLACE: the stacks of the first call that fails and of a crash go to stderr */
#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL void *origin; /* who called operator new */
THREAD_LOCAL int of_addon; /* the addon or one of its libraries started this thread */
THREAD_LOCAL int inside;   /* this library is at work */

enum owner { OTHER, ADDON, CPLUSPLUS };

static enum owner owner_of(void *address) {
  struct dl_find_object found;
  if (_dl_find_object(address, &found) != 0 || found.dlfo_link_map == NULL)
    return OTHER;
  const char *name = strrchr(found.dlfo_link_map->l_name, '/');
  if (name == NULL)
    return OTHER;
  if (strstr(name, "voxgate") != NULL || strstr(name, "libggml") != NULL)
    return ADDON;
  return strstr(name, "libstdc++") != NULL ? CPLUSPLUS : OTHER;
}

static int concerns_addon(void *caller) {
  const enum owner owner = owner_of(caller);
  return owner == ADDON || (owner == CPLUSPLUS && of_addon);
}

static int fails(enum kind kind) {
  if (control == NULL || inside || (atomic_load(&control->kinds) & kind) == 0)
    return 0;
  const int32_t call = atomic_fetch_add(&control->calls, 1) + 1;
  if (call < atomic_load(&control->first) || call > atomic_load(&control->last))
    return 0;
  if (atomic_fetch_add(&control->failed, 1) == 0 && shows_place) {
    void *frames[24];
    inside = 1;
    backtrace_symbols_fd(frames, backtrace(frames, 24), 2);
    inside = 0;
  }
  return 1;
}

#define REAL(name)                                                                                                     \
  static __typeof__(name) *real;                                                                                       \
  if (real == NULL)                                                                                                    \
    real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);

/* The blocks of the addon, by address: open addressing, at most half full. */
enum { SLOTS = 1 << 19 };
static struct {
  void *block;
  size_t size;
} slots[SLOTS];
static pthread_spinlock_t slots_lock;

static size_t slot_of(void *block) { return ((uintptr_t)block >> 4) * 0x9E3779B97F4A7C15u >> 45; }

static void remember(void *block, size_t size) {
  if (control == NULL || block == NULL || atomic_load(&control->blocks) > SLOTS / 2)
    return;
  pthread_spin_lock(&slots_lock);
  size_t slot = slot_of(block);
  while (slots[slot].block != NULL && slots[slot].block != block)
    slot = (slot + 1) % SLOTS;
  if (slots[slot].block == NULL)
    atomic_fetch_add(&control->blocks, 1);
  else
    atomic_fetch_sub(&control->bytes, slots[slot].size);
  slots[slot].block = block;
  slots[slot].size = size;
  atomic_fetch_add(&control->bytes, size);
  pthread_spin_unlock(&slots_lock);
}

static void forget(void *block) {
  if (control == NULL || block == NULL)
    return;
  pthread_spin_lock(&slots_lock);
  size_t slot = slot_of(block);
  while (slots[slot].block != NULL && slots[slot].block != block)
    slot = (slot + 1) % SLOTS;
  if (slots[slot].block == block) {
    atomic_fetch_sub(&control->blocks, 1);
    atomic_fetch_sub(&control->bytes, slots[slot].size);
    /* Move up what would not be found behind an empty slot. */
    size_t hole = slot;
    for (size_t next = (slot + 1) % SLOTS; slots[next].block != NULL; next = (next + 1) % SLOTS) {
      const size_t home = slot_of(slots[next].block);
      if ((next - home) % SLOTS >= (next - hole) % SLOTS) {
        slots[hole] = slots[next];
        hole = next;
      }
    }
    slots[hole].block = NULL;
  }
  pthread_spin_unlock(&slots_lock);
}

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static int memory_fails(void *caller, int *ours) {
  *ours = control != NULL && concerns_addon(caller);
  if (!*ours || !fails(MEMORY))
    return 0;
  errno = ENOMEM;
  return 1;
}

#define CALLER (origin != NULL ? origin : __builtin_return_address(0))

void *malloc(size_t size) {
  int ours = 0;
  if (memory_fails(CALLER, &ours))
    return NULL;
  void *block = __libc_malloc(size);
  if (ours)
    remember(block, size);
  return block;
}

void *calloc(size_t count, size_t size) {
  int ours = 0;
  if (memory_fails(CALLER, &ours))
    return NULL;
  void *block = __libc_calloc(count, size);
  if (ours)
    remember(block, count * size);
  return block;
}

void *realloc(void *old, size_t size) {
  int ours = 0;
  if (size > 0 && memory_fails(CALLER, &ours))
    return NULL;
  forget(old);
  void *block = __libc_realloc(old, size);
  if (ours)
    remember(block, size);
  return block;
}

void *aligned_alloc(size_t alignment, size_t size) {
  int ours = 0;
  if (memory_fails(CALLER, &ours))
    return NULL;
  void *block = __libc_memalign(alignment, size);
  if (ours)
    remember(block, size);
  return block;
}

int posix_memalign(void **block, size_t alignment, size_t size) {
  int ours = 0;
  if (memory_fails(CALLER, &ours))
    return ENOMEM;
  *block = __libc_memalign(alignment, size);
  if (ours)
    remember(*block, size);
  return *block == NULL ? ENOMEM : 0;
}

void free(void *block) {
  forget(block);
  __libc_free(block);
}

/* The operators of C++ call malloc and throw std::bad_alloc through these functions, which -fexceptions allows. */
static void leave(void **before) { origin = *before; }
#define OPERATOR_NEW(name, parameters, arguments)                                                                      \
  void *name parameters {                                                                                              \
    static void *(*real) parameters;                                                                                   \
    if (real == NULL)                                                                                                  \
      *(void **)&real = dlsym(RTLD_NEXT, #name);                                                                       \
    __attribute__((cleanup(leave))) void *before = origin;                                                             \
    if (origin == NULL)                                                                                                \
      origin = __builtin_return_address(0);                                                                            \
    return real arguments;                                                                                             \
  }
OPERATOR_NEW(_Znwm, (size_t size), (size))
OPERATOR_NEW(_Znam, (size_t size), (size))
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (size_t size, void *tag), (size, tag))
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (size_t size, void *tag), (size, tag))
OPERATOR_NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), (size, alignment))
OPERATOR_NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), (size, alignment))

struct start {
  void *(*run)(void *);
  void *argument;
};

static void *run_thread(void *given) {
  const struct start start = *(struct start *)given;
  __libc_free(given);
  of_addon = 1;
  return start.run(start.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  REAL(pthread_create)
  struct dl_find_object found;
  void *caller = __builtin_return_address(0);
  const int openmp = _dl_find_object(caller, &found) == 0 && strstr(found.dlfo_link_map->l_name, "libgomp") != NULL;
  if (!openmp && fails(THREAD))
    return EAGAIN;
  if (!openmp && owner_of(caller) == OTHER)
    return real(thread, attributes, run, argument);
  struct start *start = __libc_malloc(sizeof *start);
  *start = (struct start){run, argument};
  const int error = real(thread, attributes, run_thread, start);
  if (error != 0)
    __libc_free(start);
  return error;
}

static int open_fails(void) {
  if (!fails(OPEN))
    return 0;
  errno = atomic_load(&control->first) % 2 == 0 ? ENFILE : EMFILE; /* the table of the system, or of the process */
  return 1;
}

#define OPEN_CALL(name)                                                                                                \
  int name(const char *path, int flags, ...) {                                                                         \
    REAL(name)                                                                                                         \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;                               \
    va_end(rest);                                                                                                      \
    return open_fails() ? -1 : real(path, flags, mode);                                                                \
  }
OPEN_CALL(open)
OPEN_CALL(open64)

#define OPENAT_CALL(name)                                                                                              \
  int name(int folder, const char *path, int flags, ...) {                                                             \
    REAL(name)                                                                                                         \
    va_list rest;                                                                                                      \
    va_start(rest, flags);                                                                                             \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;                               \
    va_end(rest);                                                                                                      \
    return open_fails() ? -1 : real(folder, path, flags, mode);                                                        \
  }
OPENAT_CALL(openat)
OPENAT_CALL(openat64)

#define FOPEN_CALL(name)                                                                                               \
  FILE *name(const char *path, const char *mode) {                                                                     \
    REAL(name)                                                                                                         \
    return open_fails() ? NULL : real(path, mode);                                                                     \
  }
FOPEN_CALL(fopen)
FOPEN_CALL(fopen64)

static int write_fails(int file) {
  struct stat info;
  if (control == NULL || (atomic_load(&control->kinds) & WRITE) == 0 || fstat(file, &info) != 0 ||
      !S_ISREG(info.st_mode) || !fails(WRITE))
    return 0;
  errno = ENOSPC;
  return 1;
}

#define WRITE_CALL(name, parameters, arguments)                                                                        \
  ssize_t name parameters {                                                                                            \
    REAL(name)                                                                                                         \
    return write_fails(file) ? -1 : real arguments;                                                                    \
  }
WRITE_CALL(write, (int file, const void *data, size_t size), (file, data, size))
WRITE_CALL(pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
WRITE_CALL(pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
WRITE_CALL(writev, (int file, const struct iovec *parts, int count), (file, parts, count))
WRITE_CALL(pwritev, (int file, const struct iovec *parts, int count, off_t at), (file, parts, count, at))
WRITE_CALL(pwritev64, (int file, const struct iovec *parts, int count, off64_t at), (file, parts, count, at))

#define SYNC_CALL(name)                                                                                                \
  int name(int file) {                                                                                                 \
    REAL(name)                                                                                                         \
    if (!fails(SYNC))                                                                                                  \
      return real(file);                                                                                               \
    errno = EIO;                                                                                                       \
    return -1;                                                                                                         \
  }
SYNC_CALL(fsync)
SYNC_CALL(fdatasync)

#define MAP_CALL(name, offset)                                                                                         \
  void *name(void *address, size_t size, int protection, int flags, int file, offset at) {                             \
    REAL(name)                                                                                                         \
    if (!concerns_addon(__builtin_return_address(0)) || !fails(MAP))                                                   \
      return real(address, size, protection, flags, file, at);                                                         \
    errno = ENOMEM;                                                                                                    \
    return MAP_FAILED;                                                                                                 \
  }
MAP_CALL(mmap, off_t)
MAP_CALL(mmap64, off64_t)

static void show_end(int signal) {
  void *frames[40];
  backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
  raise(signal);
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("VOXGATE_FAIL_NTH");
  pthread_spin_init(&slots_lock, PTHREAD_PROCESS_PRIVATE);
  void *frames[1];
  backtrace(frames, 1); /* loads what it needs */
  shows_place = getenv("VOXGATE_FAIL_PLACE") != NULL;
  for (int i = 0; shows_place && i < 2; i++)
    sigaction((int[]){SIGABRT, SIGSEGV}[i], &(struct sigaction){.sa_handler = show_end, .sa_flags = SA_RESETHAND}, NULL);
  const int file = path == NULL ? -1 : open(path, O_RDWR);
  void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file >= 0)
    close(file);
  /* Programs that the gateway starts are not concerned. */
  unsetenv("LD_PRELOAD");
  unsetenv("VOXGATE_FAIL_NTH");
  if (page != MAP_FAILED)
    control = page;
}
