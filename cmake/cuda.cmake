# ggml's CUDA backend becomes a library of its own, which is loaded at run time: a machine without a GPU, its driver
# or the CUDA libraries leaves it aside and computes on the CPU. scripts/build-cuda.mjs calls this.

set(GGML_CUDA ON CACHE BOOL "" FORCE)
set(GGML_CPU OFF CACHE BOOL "" FORCE)
# Without this the backend links libcuda.so, which only machines with a driver have.
set(GGML_CUDA_NO_VMM ON CACHE BOOL "" FORCE)
set(GGML_CUDA_NCCL OFF CACHE BOOL "" FORCE)
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
  # A thread that leaves a failed call by a jump (native/backends/gpu_guard.h) never unlocks what it has locked. So the
  # count of what a device holds is locked alone: less is counted when all is freed, and memory is asked for before.
  set(end_of_lock "#endif // !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)\n\n")
  set(less "    std::lock_guard<std::mutex> lock(dev_ctx->device_mutex);\n    dev_ctx->active_count--;\n")
  set(asked "    ggml_cuda_set_device(ctx->device);\n    CUDA_CHECK(cudaMemGetInfo(free, total));\n")
  voxgate_patched_source(ggml-cuda.cu "${WHISPER_SOURCE_DIR}/ggml/src/ggml-cuda/ggml-cuda.cu"
    1 "${less}${end_of_lock}    delete ctx;\n" "    delete ctx;\n${less}${end_of_lock}"
    1 "${less}${end_of_lock}    delete cuda_ctx;\n" "    delete cuda_ctx;\n${less}${end_of_lock}"
    1 "${less}${end_of_lock}    CUDA_CHECK(cudaFreeHost(buffer->context));\n"
      "    CUDA_CHECK(cudaFreeHost(buffer->context));\n${less}${end_of_lock}"
    1 "    std::lock_guard<std::mutex> lock(ctx->device_mutex);\n${end_of_lock}${asked}" "${end_of_lock}${asked}\n"
    1 "    if (ctx->active_count == 0) {"
      "    if (std::lock_guard<std::mutex> lock(ctx->device_mutex); ctx->active_count == 0) {")
  get_target_property(sources ggml-cuda SOURCES)
  list(FILTER sources EXCLUDE REGEX "(^|/)ggml-cuda\\.cu$")
  list(APPEND sources "${VOXGATE_GENERATED}/patched/ggml-cuda.cu")
  set_target_properties(ggml-cuda PROPERTIES SOURCES "${sources}")
  set(folders "$ORIGIN" "${CUDAToolkit_LIBRARY_DIR}")
  if(VOXGATE_CUBLAS)
    target_include_directories(ggml-cuda SYSTEM PRIVATE "${VOXGATE_CUBLAS}/include")
    list(APPEND folders "${VOXGATE_CUBLAS}/lib")
  endif()
  set_target_properties(ggml-cuda PROPERTIES INSTALL_RPATH "${folders}")
endfunction()
