# This sets GGML's x86 feature switches to the features of this machine, or to those of a level.
#
# It does not use GGML_NATIVE: ggml refuses that together with backends loaded at run time, and gcc 12's -march=native
# takes newer server CPUs for an older model and tunes for that one, which costs a fifth of the speed.
#
# The AMX features are left out on purpose. Virtual machines advertise amx_int8 without the kernel letting a process
# use the tile registers; code compiled for it dies with SIGILL in ggml's tinygemm_kernel_amx.

function(voxgate_host_cpu_flags result)
  file(STRINGS /proc/cpuinfo flag_lines REGEX "^flags" LIMIT_COUNT 1)
  string(REGEX REPLACE "^flags[^:]*: *" "" flags "${flag_lines}")
  string(REPLACE " " ";" flags "${flags}")
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# The flags of a level (native/kernels/cpu_level.h), which are those of the levels before it and some more.
function(voxgate_level_flags level result)
  set(avx sse4_2 avx)
  set(avx2 ${avx} avx2 fma f16c bmi2)
  set(avx2_vnni ${avx2} avx_vnni)
  set(avx512 ${avx2} avx512f avx512cd avx512bw avx512dq avx512vl)
  set(avx512_vnni ${avx512} avx512_vnni)
  if(NOT level MATCHES "^(sse2|avx|avx2|avx2_vnni|avx512|avx512_vnni)$")
    message(FATAL_ERROR "Expected native, all, or a level such as avx2 for VOXGATE_CPU but received ${level}")
  endif()
  set(${result} "${${level}}" PARENT_SCOPE)
endfunction()

function(voxgate_set_cpu_features flags)
  # Each entry is ggml's name of a feature and every kernel flag it needs: its AVX512 stands for F, CD, BW, DQ and VL.
  set(features
      "SSE42 sse4_2" "AVX avx" "AVX2 avx2" "FMA fma" "F16C f16c" "BMI2 bmi2" "AVX_VNNI avx_vnni"
      "AVX512 avx512f avx512cd avx512bw avx512dq avx512vl" "AVX512_VBMI avx512vbmi" "AVX512_VNNI avx512_vnni"
      "AVX512_BF16 avx512_bf16")
  set(found "")
  foreach(feature IN LISTS features)
    separate_arguments(needed UNIX_COMMAND "${feature}")
    list(POP_FRONT needed name)
    set(present ON)
    foreach(flag IN LISTS needed)
      if(NOT flag IN_LIST flags)
        set(present OFF)
      endif()
    endforeach()
    if(present)
      list(APPEND found "${name}")
    endif()
    set(GGML_${name} ${present} CACHE BOOL "Set from /proc/cpuinfo" FORCE)
  endforeach()
  message(STATUS "CPU backend for ${VOXGATE_CPU}: ${found}")
endfunction()

set(GGML_NATIVE ON CACHE BOOL "" FORCE)
if(NOT VOXGATE_CPU STREQUAL "native")
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
  voxgate_level_flags("${VOXGATE_CPU}" flags)
  if(VOXGATE_TESTS AND VOXGATE_CPU STREQUAL "avx2_vnni")
    # AVX-512 has the same instructions on 256 bits in another encoding, so tests of this level run with it.
    voxgate_host_cpu_flags(host_flags)
    if("avx512_vnni" IN_LIST host_flags AND NOT "avx_vnni" IN_LIST host_flags)
      voxgate_level_flags(avx2 flags)
      add_compile_options(-mavx512vl -mavx512vnni)
    endif()
  endif()
  voxgate_set_cpu_features("${flags}")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i686" AND EXISTS /proc/cpuinfo)
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
  voxgate_host_cpu_flags(flags)
  voxgate_set_cpu_features("${flags}")
endif()
