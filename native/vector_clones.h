#pragma once

// Functions with this attribute are compiled for several processors, and the loader takes the best version.
// Only the loader of glibc can do that. It does so before ThreadSanitizer is ready for instrumented code.
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
