# ggml's CUDA backend becomes a library of its own, which is loaded at run time: a machine without a GPU, its driver
# or the CUDA libraries leaves it aside and computes on the CPU. scripts/build-cuda.mjs calls this.

set(GGML_CUDA ON CACHE BOOL "" FORCE)
set(GGML_CPU OFF CACHE BOOL "" FORCE)
# Without this the backend links libcuda.so, which only machines with a driver have.
set(GGML_CUDA_NO_VMM ON CACHE BOOL "" FORCE)
set(GGML_CUDA_NCCL OFF CACHE BOOL "" FORCE)
# A step of Whisper's decoder is some two hundred small kernels, which take longer to launch one by one than to run.
set(GGML_CUDA_GRAPHS ON CACHE BOOL "" FORCE)
if(VOXGATE_CUBLAS)
  foreach(library cublas cublasLt)
    file(GLOB found "${VOXGATE_CUBLAS}/lib/lib${library}.so.*")
    if(NOT found)
      message(FATAL_ERROR "lib${library}.so was not found in ${VOXGATE_CUBLAS}/lib")
    endif()
    set(CUDA_${library}_LIBRARY "${found}" CACHE FILEPATH "" FORCE)
  endforeach()
endif()

# The libraries of CUDA that a target needs are looked for beside it alone: the folders of this machine mean nothing to
# another one. A package holds copies of them there, and the folder of the build has links.
function(voxgate_keep_beside target folder)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN")
  file(MAKE_DIRECTORY "${folder}")
  foreach(library IN LISTS ARGN)
    file(REAL_PATH "${library}" real)
    if(NOT real MATCHES "/(lib[A-Za-z]+\\.so\\.[0-9]+)[^/]*$")
      message(FATAL_ERROR "${library} is no library of CUDA")
    endif()
    file(CREATE_LINK "${real}" "${folder}/${CMAKE_MATCH_1}" SYMBOLIC)
  endforeach()
endfunction()

# This runs after ggml's own files.
function(voxgate_finish_cuda)
  find_package(CUDAToolkit REQUIRED)
  get_target_property(sources ggml-cuda SOURCES)
  get_target_property(original ggml-cuda SOURCE_DIR)
  file(GLOB patched "${VOXGATE_PATCHED}/ggml/src/ggml-cuda/*.cu")
  foreach(source IN LISTS patched)
    get_filename_component(name "${source}" NAME_WE)
    list(FILTER sources EXCLUDE REGEX "(^|/)${name}\\.cu$")
  endforeach()
  # Those of a folder whose headers are the original ones, which are included by their names alone.
  set_target_properties(ggml-cuda PROPERTIES SOURCES "${sources};${patched}")
  target_include_directories(ggml-cuda PRIVATE "${original}")
  if(VOXGATE_CUBLAS)
    target_include_directories(ggml-cuda SYSTEM PRIVATE "${VOXGATE_CUBLAS}/include")
  endif()
  voxgate_keep_beside(ggml-cuda "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}"
                      "${CUDA_cudart_LIBRARY}" "${CUDA_cublas_LIBRARY}" "${CUDA_cublasLt_LIBRARY}")
endfunction()
