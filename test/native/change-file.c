/* Preloaded into a process, this library changes a file while the process reads it. VOXGATE_CHANGE_FILE is the number
 * of the read before which it happens, how the file changes, and its path: `7:cut:/tmp/model.bin`. The process may set
 * it again for another file. The file named by VOXGATE_CHANGE_READS then holds the number of reads so far. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char setting[4096];
static struct stat file;
static int reads, nth;
static char how[16], path[4000];

static void write_garbage(const char *to, int flags) {
  const int out = open(to, O_WRONLY | flags, 0644);
  char garbage[65536];
  memset(garbage, 0x7f, sizeof garbage);
  for (off_t at = 0; at < file.st_size; at += sizeof garbage)
    if (pwrite(out, garbage, file.st_size - at < (off_t)sizeof garbage ? file.st_size - at : sizeof garbage, at) < 0)
      abort();
  close(out);
}

static void change(void) {
  if (strcmp(how, "cut") == 0 && truncate(path, file.st_size / 2) != 0)
    abort();
  if (strcmp(how, "written") == 0)
    write_garbage(path, 0);
  if (strcmp(how, "removed") == 0)
    unlink(path);
  if (strcmp(how, "replaced") == 0) {
    char other[4096];
    snprintf(other, sizeof other, "%s.other", path);
    write_garbage(other, O_CREAT);
    rename(other, path);
  }
}

static void count_read(int descriptor) {
  const char *now = getenv("VOXGATE_CHANGE_FILE");
  if (now == NULL)
    return;
  if (strcmp(now, setting) != 0) {
    snprintf(setting, sizeof setting, "%s", now);
    reads = 0;
    if (sscanf(setting, "%d:%15[^:]:%3999s", &nth, how, path) != 3 || stat(path, &file) != 0)
      abort();
  }
  struct stat info;
  if (fstat(descriptor, &info) != 0 || info.st_dev != file.st_dev || info.st_ino != file.st_ino)
    return;
  if (++reads == nth)
    change();
  const int count = open(getenv("VOXGATE_CHANGE_READS"), O_WRONLY);
  if (pwrite(count, &reads, sizeof reads, 0) != sizeof reads)
    abort();
  close(count);
}

/* Other threads of Node.js read as well, from pipes, while a thread loads the file. */
static void before_read(int descriptor) {
  static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&one_at_a_time);
  count_read(descriptor);
  pthread_mutex_unlock(&one_at_a_time);
}

ssize_t read(int descriptor, void *to, size_t size) {
  static __typeof__(read) *real;
  if (real == NULL)
    real = (__typeof__(read) *)dlsym(RTLD_NEXT, "read");
  before_read(descriptor);
  return real(descriptor, to, size);
}

size_t fread(void *to, size_t size, size_t count, FILE *from) {
  static __typeof__(fread) *real;
  if (real == NULL)
    real = (__typeof__(fread) *)dlsym(RTLD_NEXT, "fread");
  before_read(fileno(from));
  return real(to, size, count, from);
}
