// Stands for each of the libraries of CUDA in test/deep/cuda-package.test.ts, by what is defined:
//
// DRIVER    libcuda.so.1 of a machine whose driver sees no GPU, with what the run time of CUDA asks it first
// RUNTIME   libcudart.so.13, which opens the driver as NVIDIA's does
// CUBLASLT  libcublasLt.so.13
// CUBLAS    libcublas.so.13, which needs that
// GGML      ggml's library for CUDA, which needs them all and finds no GPU
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef DRIVER
enum { NO_DEVICE = 100, NOT_FOUND = 500 };
int cuInit(unsigned flags) { return NO_DEVICE; }
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 0;
  return NO_DEVICE;
}
static int nothing(void) { return NO_DEVICE; }
// The run time asks for each function by its name, and takes a driver that lacks one for too old.
int cuGetProcAddress_v2(const char* name, void** function, int version, uint64_t flags, int* status) {
  void* own = dlsym(RTLD_DEFAULT, name);
  *function = own != NULL ? own : (void*)nothing;
  if (strcmp(name, "cuInit") == 0)
    *function = (void*)cuInit;
  if (strcmp(name, "cuDriverGetVersion") == 0)
    *function = (void*)cuDriverGetVersion;
  if (strcmp(name, "cuDeviceGetCount") == 0)
    *function = (void*)cuDeviceGetCount;
  if (strcmp(name, "cuGetProcAddress") == 0 || strcmp(name, "cuGetProcAddress_v2") == 0)
    *function = (void*)cuGetProcAddress_v2;
  if (status != NULL)
    *status = 0;
  return 0;
}
int cuGetExportTable(const void** table, const void* id) {
  *table = NULL;
  return NOT_FOUND;
}
#endif

#ifdef RUNTIME
// What CUDA says: the driver is too old, or there is none, or it has no device.
const char* stub_why(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*init)(unsigned) = driver == NULL ? NULL : (int (*)(unsigned))dlsym(driver, "cuInit");
  if (init == NULL)
    return "CUDA driver version is insufficient for CUDA runtime version";
  return init(0) == 100 ? "no CUDA-capable device is detected" : "unknown error";
}
#endif

#ifdef CUBLASLT
int stub_lt(void) { return 0; }
#endif

#ifdef CUBLAS
int stub_lt(void);
int stub_blas(void) { return stub_lt(); }
#endif

#ifdef GGML
// The interface of a library of ggml (ggml-backend-impl.h).
void ggml_log_internal(int level, const char* format, ...);
const char* stub_why(void);
int stub_blas(void);
struct feature {
  const char* name;
  const char* value;
};
static struct feature features[] = {{"ARCHS", "860"}, {NULL, NULL}};
static struct feature* get_features(void* reg) { return features; }
static const char* name(void* reg) { return "CUDA"; }
static size_t count(void* reg) { return (size_t)stub_blas(); }
static void* device(void* reg, size_t i) { return NULL; }
static void* address(void* reg, const char* of) {
  return strcmp(of, "ggml_backend_get_features") == 0 ? (void*)get_features : NULL;
}
static struct {
  int version;
  void *name, *count, *device, *address, *context;
} reg = {2, name, count, device, address, NULL};
void* ggml_backend_init(void) {
  ggml_log_internal(4, "%s: failed to initialize CUDA: %s\n", "ggml_cuda_init", stub_why());
  return &reg;
}
#endif
