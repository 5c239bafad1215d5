#pragma once

// How a loop is chosen for the processor that it runs on. Where the loop lives decides:
//
// - native/kernels/ is compiled into ggml's CPU library, once for each level of instructions
//   (kernels/vectors.h has their registers). The level of SVC_CPU, or the processor, chooses the library
//   (backends/cpu_library.cpp).
// - Everywhere else a loop that the compiler turns into vectors has VOXGATE_VECTOR_CLONES. It is compiled for
//   several processors, and the loader takes the best version.
// - layers/panels.cpp is written for each width of registers, since they differ in how many rows fit. SVC_CPU
//   limits its choice, too, because the last bits of a result depend on it.
//
// The products in bfloat16 of both sides have functions of their own (`target` attributes), which are called
// where processor_bfloat16() has what they need.

// Only the loader of glibc can choose between versions. It does so before ThreadSanitizer is ready for
// instrumented code.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
// What has AVX2 has fused products too. Other compilers than gcc from 12 on have no name for both.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define VOXGATE_AVX2 "arch=x86-64-v3"
#else
#define VOXGATE_AVX2 "avx2"
#endif
#ifdef VOXGATE_NO_AVX512 // in a build for one level
#define VOXGATE_VECTOR_CLONES __attribute__((target_clones(VOXGATE_AVX2, "default")))
#else
#define VOXGATE_VECTOR_CLONES __attribute__((target_clones("avx512f", VOXGATE_AVX2, "default")))
#endif
#else
#define VOXGATE_VECTOR_CLONES
#endif

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace voxgate {

// What products in bfloat16 run on, from the least to the best: AVX-512's instructions for them, or AMX
// tiles.
enum class Bfloat16 { none, vectors, tiles };

// What this processor has, and the system lets the process use. The system is asked at the first call.
// Each library has an answer of its own: a symbol that they share would keep those loaded that are only
// looked at.
static inline Bfloat16 processor_bfloat16() {
#if defined(__x86_64__) && defined(__linux__)
  static const Bfloat16 there = [] {
    constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24, kInt8 = 1U << 25, kVectorBf16 = 1U << 5;
    constexpr long kRequest = 0x1023, kTileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) == 0 || (a & kVectorBf16) == 0)
      return Bfloat16::none;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (~d & (kBf16 | kTiles | kInt8)) != 0)
      return Bfloat16::vectors;
    return syscall(SYS_arch_prctl, kRequest, kTileData) == 0 ? Bfloat16::tiles : Bfloat16::vectors;
  }();
  return there;
#else
  return Bfloat16::none;
#endif
}

} // namespace voxgate
