/* Preloaded into a process, this library shifts its wall clock by the seconds in the file named by VOXGATE_CLOCK_LEAP
 * (an int64), which a test writes while the process runs. The clocks that measure time go on as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *leap;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("VOXGATE_CLOCK_LEAP");
  const int file = path == NULL ? -1 : open(path, O_RDONLY);
  void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *leap, PROT_READ, MAP_SHARED, file, 0);
  if (file >= 0)
    close(file);
  if (page != MAP_FAILED)
    leap = page;
}

static int64_t shift(void) { return leap == NULL ? 0 : *leap; }

int clock_gettime(clockid_t clock, struct timespec *now) {
  static __typeof__(clock_gettime) *real;
  if (real == NULL)
    real = (__typeof__(clock_gettime) *)dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
    now->tv_sec += shift();
  return result;
}

int gettimeofday(struct timeval *now, void *zone) {
  (void)zone;
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  *now = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *to) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (to != NULL)
    *to = precise.tv_sec;
  return precise.tv_sec;
}
