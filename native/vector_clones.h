#pragma once

// Functions with this attribute are compiled for several processors, and the loader takes the best version.
// Only the loader of glibc can do that. It does so before ThreadSanitizer is ready for instrumented code.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__)
#ifdef VOXGATE_NO_AVX512 // in a build for one level
#define VOXGATE_VECTOR_CLONES __attribute__((target_clones("fma", "default")))
#else
#define VOXGATE_VECTOR_CLONES __attribute__((target_clones("avx512f", "fma", "default")))
#endif
#else
#define VOXGATE_VECTOR_CLONES
#endif
