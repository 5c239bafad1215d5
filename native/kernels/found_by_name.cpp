// What ggml's CPU library has of ours is found by name, since it is loaded at run time. Its own lookup asks
// here first (cmake/ggml.cmake).
#include "cpu_level.h"
#include "kernel_calls.h"
#include "speech_ops.h"

#include <cstring>

extern "C" const voxgate::CpuLevel* voxgate_cpu_level();
extern "C" const voxgate::SpeechOps* voxgate_speech_ops();

#ifdef VOXGATE_TESTS
namespace voxgate {
KernelCalls kernel_calls;
}
#endif

// Returns null for a name that is none of ours.
extern "C" void* voxgate_find(const char* name) {
  using namespace voxgate;
  if (std::strcmp(name, kGetCpuLevel) == 0)
    return reinterpret_cast<void*>(voxgate_cpu_level);
  if (std::strcmp(name, kGetSpeechOps) == 0)
    return reinterpret_cast<void*>(voxgate_speech_ops);
#ifdef VOXGATE_TESTS
  if (std::strcmp(name, kGetKernelCalls) == 0)
    return reinterpret_cast<void*>(+[] { return &kernel_calls; });
#endif
  return nullptr;
}
