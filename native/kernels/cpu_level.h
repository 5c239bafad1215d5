#pragma once

namespace voxgate {

// What one of ggml's CPU libraries, with the kernels in it, is compiled for. Levels have the names of
// SVC_CPU.
struct CpuLevel {
  // sse2, avx, avx2, avx2_vnni, avx512, avx512_vnni; neon, neon_dotprod, neon_i8mm; generic on other
  // processors.
  const char* name;
  // Whether kernels may compute on AMX tiles, which makes the level `amx`. The system is asked at the first
  // call.
  bool (*may_use_tiles)();
  // From now on they may not. To be called before anything computes.
  void (*leave_out_tiles)();
};

// Each library has it under this name (backends/cpu_library.h).
using GetCpuLevel = const CpuLevel* (*)();
constexpr const char* kGetCpuLevel = "voxgate_cpu_level";

} // namespace voxgate
