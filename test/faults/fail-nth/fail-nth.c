/* Preloaded into a gateway, this library fails one chosen call of the system, as SQLite's tests do: the first one, then
 * the second one, and so on until the work needs no more of them. The file named by VOXGATE_FAIL_NTH holds a `struct
 * control`, which the test reads and writes while the gateway runs (injector.ts knows its layout).
 *
 * Threads and files fail for the whole process, but those of OpenMP, whose runtime then ends the process by design.
 * Sockets and pipes never fail. */
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

enum kind { THREAD = 1, OPEN = 2, WRITE = 4, SYNC = 8 };

struct control {
  _Atomic int32_t kinds;   /* which calls are counted; 0: none */
  _Atomic int32_t first;   /* the first call that fails, from 1; 0: none */
  _Atomic int32_t last;    /* the last call that fails */
  _Atomic int32_t calls;   /* calls since the count was set to 0 */
  _Atomic int32_t failed;  /* those that failed */
};

static struct control *control;
static int shows_place; /* VOXGATE_FAIL_PLACE: the stacks of the first call that fails and of a crash go to stderr */
static __thread int inside; /* this library is at work */

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

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  REAL(pthread_create)
  struct dl_find_object found;
  const int openmp = _dl_find_object(__builtin_return_address(0), &found) == 0 &&
                     strstr(found.dlfo_link_map->l_name, "libgomp") != NULL;
  return !openmp && fails(THREAD) ? EAGAIN : real(thread, attributes, run, argument);
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

static void show_end(int signal) {
  void *frames[40];
  backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
  raise(signal);
}

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("VOXGATE_FAIL_NTH");
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
