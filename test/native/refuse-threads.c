/* Preloaded into a process, it lets that start as many threads and processes as the file named by VOXGATE_ALLOWED says
 * (a 32-bit integer; below 0 any number), and fails the next as a system does whose limit is reached. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static _Atomic int *allowed;

__attribute__((constructor)) static void map_allowed(void) {
  const char *path = getenv("VOXGATE_ALLOWED");
  int file = path == NULL ? -1 : open(path, O_RDWR);
  void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *allowed, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page != MAP_FAILED)
    allowed = page;
  if (file >= 0)
    close(file);
}

static int refused(void) {
  if (allowed == NULL)
    return 0;
  int left = atomic_load(allowed);
  while (left > 0 && !atomic_compare_exchange_weak(allowed, &left, left - 1))
    ;
  return left == 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (create == NULL)
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
  return refused() ? EAGAIN : create(thread, attributes, start, argument);
}

pid_t fork(void) {
  static pid_t (*real)(void);
  if (real == NULL)
    *(void **)&real = dlsym(RTLD_NEXT, "fork");
  if (!refused())
    return real();
  errno = EAGAIN;
  return -1;
}
