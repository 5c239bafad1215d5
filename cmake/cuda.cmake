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

# This runs after ggml's own files and tells the backend where the libraries lie that it needs at run time.
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
  set(folders "$ORIGIN" "${CUDAToolkit_LIBRARY_DIR}")
  if(VOXGATE_CUBLAS)
    target_include_directories(ggml-cuda SYSTEM PRIVATE "${VOXGATE_CUBLAS}/include")
    list(APPEND folders "${VOXGATE_CUBLAS}/lib")
  endif()
  set_target_properties(ggml-cuda PROPERTIES INSTALL_RPATH "${folders}")
endfunction()
