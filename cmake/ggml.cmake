# ggml is built from the sources of whisper.cpp. The addon gets shared libraries beside it, with the compute backends
# loaded at run time, so that a GPU backend can simply be absent. The tests get static libraries for the CPU, but for
# tests of all levels.

set(GGML_LLAMAFILE ON CACHE BOOL "" FORCE) # this halves the time of the encoder
set(GGML_CCACHE OFF CACHE BOOL "" FORCE)
set(GGML_ALL_WARNINGS OFF CACHE BOOL "" FORCE)
# With git, ggml would take the commit of this project for its own and recompile with each commit.
set(GIT_EXE OFF CACHE FILEPATH "" FORCE)
if(APPLE)
  # ggml takes these by default there. The kernels of this project are for the CPU, and no test runs with others.
  foreach(backend METAL BLAS ACCELERATE)
    set(GGML_${backend} OFF CACHE BOOL "" FORCE)
  endforeach()
endif()
set(GGML_BUILD_TESTS OFF CACHE BOOL "" FORCE)
set(GGML_BUILD_EXAMPLES OFF CACHE BOOL "" FORCE)

# The features of an x86 processor are read from Linux (cmake/host-cpu.cmake). Elsewhere the library is chosen among
# those of all levels, when the addon loads.
if(VOXGATE_CPU STREQUAL "native" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT EXISTS /proc/cpuinfo)
  set(VOXGATE_CPU all)
endif()

# ggml's own threads spin at every step of a graph: on a machine that does anything else, a step waits for a thread
# that is not running while the other burns its core. The threads of OpenMP soon sleep (src/engine/addon.ts says how
# soon).
set(GGML_OPENMP ON CACHE BOOL "" FORCE)
if(VOXGATE_SANITIZE_THREADS)
  # GNU's OpenMP runtime is not instrumented, and ThreadSanitizer takes each of its barriers for a race.
  set(GGML_OPENMP OFF CACHE BOOL "" FORCE)
endif()
if(VOXGATE_TESTS AND NOT VOXGATE_CPU STREQUAL "all")
  set(BUILD_SHARED_LIBS OFF)
  set(GGML_BACKEND_DL OFF CACHE BOOL "" FORCE)
  if(NOT WIN32)
    # The objects are those of the shared libraries then, and ccache has them from the addon.
    add_compile_definitions(GGML_SHARED GGML_BACKEND_SHARED)
  endif()
else()
  set(BUILD_SHARED_LIBS ON)
  set(GGML_BACKEND_DL ON CACHE BOOL "" FORCE)
  if(VOXGATE_TESTS)
    set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/native/test") # beside the program, which looks there
  endif()
endif()
include(cmake/arm-cpu.cmake)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  # With this option ggml lays weights of 8 bits out for its own kernels when they are loaded. Ours would never see them.
  set(GGML_CPU_REPACK OFF CACHE BOOL "" FORCE)
endif()

if(VOXGATE_CUDA)
  include(cmake/cuda.cmake)
elseif(VOXGATE_VULKAN)
  include(cmake/vulkan.cmake)
elseif(VOXGATE_CPU STREQUAL "all")
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
  set(GGML_CPU_ALL_VARIANTS ON CACHE BOOL "" FORCE)
else()
  set(GGML_CPU_ALL_VARIANTS OFF CACHE BOOL "" FORCE)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    voxgate_set_arm_level(${VOXGATE_CPU})
  else()
    include(cmake/host-cpu.cmake)
  endif()
endif()

# Libraries lie beside the addon and find each other there.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
if(APPLE)
  set(CMAKE_INSTALL_RPATH "@loader_path")
else()
  set(CMAKE_INSTALL_RPATH "$ORIGIN")
endif()
if(CMAKE_LIBRARY_OUTPUT_DIRECTORY)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
endif()

add_subdirectory("${WHISPER_SOURCE_DIR}/ggml" "${CMAKE_BINARY_DIR}/ggml" EXCLUDE_FROM_ALL)

# The libraries have names of our own, because another addon in the process may bring a libggml.so of another version,
# and the loader takes libraries of one name for the same. They have no version suffix, so there are no symbolic links
# to package.
foreach(target ggml ggml-base)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME "voxgate-${target}")
endforeach()
foreach(target ggml ggml-base ggml-cpu ggml-cuda ggml-vulkan)
  if(TARGET ${target})
    set_property(TARGET ${target} PROPERTY VERSION)
    set_property(TARGET ${target} PROPERTY SOVERSION)
  endif()
endforeach()
foreach(target ggml ggml-base ggml-cuda ggml-vulkan)
  if(TARGET ${target})
    target_compile_options(${target} PRIVATE -w)
  endif()
endforeach()

# This lets the failure of a GPU be thrown from where ggml would end the process (native/backends/gpu_guard.h).
target_compile_options(ggml-base PRIVATE $<$<COMPILE_LANGUAGE:C>:-fexceptions>)

if(TARGET ggml-cuda)
  voxgate_finish_cuda()
endif()
if(TARGET ggml-vulkan)
  voxgate_finish_vulkan()
endif()

# Our kernels stand in front of ggml's in each of its CPU libraries, and are compiled as those are. The table in
# native/kernels/ops_internals.cpp says why.
get_property(ggml_targets DIRECTORY "${WHISPER_SOURCE_DIR}/ggml/src" PROPERTY BUILDSYSTEM_TARGETS)
set(kernels "${CMAKE_CURRENT_SOURCE_DIR}/native/kernels")
foreach(target IN LISTS ggml_targets)
  get_target_property(sources ${target} SOURCES)
  if(sources MATCHES "ggml-cpu/llamafile/sgemm.cpp")
    list(REMOVE_ITEM sources ggml-cpu/llamafile/sgemm.cpp ggml-cpu/ops.cpp ggml-cpu/ggml-cpu.cpp ggml-cpu/ggml-cpu.c)
    set(patched "${VOXGATE_PATCHED}/ggml/src/ggml-cpu")
    list(APPEND sources "${patched}/ggml-cpu.cpp" "${patched}/ggml-cpu.c" "${kernels}/sgemm_internals.cpp"
         "${kernels}/ops_internals.cpp" "${kernels}/fused_ops.cpp" "${kernels}/few_products.cpp" "${kernels}/row_chain.cpp" "${kernels}/cpu_level.cpp" "${kernels}/found_by_name.cpp"
         "${kernels}/q8_gemm.cpp" "${kernels}/q8_few.cpp" "${kernels}/q8_tiles.cpp" "${kernels}/amx_gemm.cpp" "${kernels}/speech_ops.cpp" "${kernels}/speech_attention.cpp"
         "${kernels}/tile_ops.cpp" "${kernels}/tile_attention.cpp" "${kernels}/unmasked_attention.cpp"
         "${kernels}/unmasked_attention_bfloat16.cpp")
    set_target_properties(${target} PROPERTIES SOURCES "${sources}")
    target_include_directories(${target} PRIVATE "${VOXGATE_GENERATED}" "${WHISPER_SOURCE_DIR}/ggml/src/ggml-cpu")
    target_compile_options(${target} PRIVATE -w $<$<COMPILE_LANGUAGE:C>:-fexceptions>
                           ${VOXGATE_VECTOR_LOOPS})
    if(VOXGATE_TESTS)
      target_compile_definitions(${target} PRIVATE VOXGATE_TESTS)
    endif()
  endif()
endforeach()

# One library is left for each level of SVC_CPU: x64, sandybridge, haswell, alderlake, skylakex and cascadelake; on ARM
# armv8.0_1, armv8.2_1 and armv8.6_1, or those of Apple. The others have instructions that nothing here computes with,
# or, as sapphirerapids, die where a CPU claims them and does not have them (see host-cpu.cmake). ggml's lists cannot be
# changed from here, so they become empty libraries under a name that nothing looks for.
file(WRITE "${CMAKE_BINARY_DIR}/empty.cpp" "")
foreach(variant sse42 ivybridge piledriver cannonlake icelake cooperlake zen4 sapphirerapids
        armv8.2_2 armv8.2_3 armv8.6_2 armv9.2_1 armv9.2_2 apple_m4)
  if(TARGET ggml-cpu-${variant})
    set_target_properties(ggml-cpu-${variant} PROPERTIES SOURCES "${CMAKE_BINARY_DIR}/empty.cpp" COMPILE_OPTIONS ""
                          OUTPUT_NAME "voxgate-left-out-${variant}" LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/left-out")
  endif()
endforeach()
foreach(variant level IN ZIP_LISTS VOXGATE_ARM_VARIANTS VOXGATE_ARM_VARIANT_LEVELS)
  if(TARGET ggml-cpu-${variant})
    voxgate_arm_library(ggml-cpu-${variant} ${level})
  endif()
endforeach()
