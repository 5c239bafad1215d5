# This sets GGML's x86 feature switches to the features of this machine.
#
# It does not use GGML_NATIVE: ggml refuses that together with backends loaded at run time, and gcc 12's -march=native
# takes newer server CPUs for an older model and tunes for that one, which costs a fifth of the speed.
#
# The AMX features are left out on purpose. Virtual machines advertise amx_int8 without the kernel letting a process
# use the tile registers; code compiled for it dies with SIGILL in ggml's tinygemm_kernel_amx.

function(voxgate_detect_host_cpu)
  file(STRINGS /proc/cpuinfo flag_lines REGEX "^flags" LIMIT_COUNT 1)
  string(REGEX REPLACE "^flags[^:]*: *" "" flags "${flag_lines}")
  string(REPLACE " " ";" flags "${flags}")

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
  message(STATUS "CPU backend for this machine: ${found}")
endfunction()

set(GGML_NATIVE ON CACHE BOOL "" FORCE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|i686" AND EXISTS /proc/cpuinfo)
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
  voxgate_detect_host_cpu()
endif()
