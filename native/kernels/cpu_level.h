#pragma once

#include "../simd_dispatch.h"

namespace voxgate {

// What one of ggml's CPU libraries, with the kernels in it, is compiled for. Levels have the names of
// SVC_CPU.
struct CpuLevel {
  // sse2, avx, avx2, avx2_vnni, avx512, avx512_vnni; neon, neon_dotprod, neon_i8mm; generic on other
  // processors.
  const char* name;
  // What kernels may use beside it, which makes the level `avx512_bf16` or `amx`. The system is asked at the
  // first call.
  Bfloat16 (*bfloat16)();
  // From now on they use no more than this. To be called before anything computes.
  void (*limit_bfloat16)(Bfloat16 most);
};

// Each library has it under this name (backends/cpu_library.h).
using GetCpuLevel = const CpuLevel* (*)();
constexpr const char* kGetCpuLevel = "voxgate_cpu_level";

} // namespace voxgate
