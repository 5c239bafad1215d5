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
  # A thread that leaves a failed call by a jump (native/backends/gpu_guard.h) never unlocks what it has locked. So the
  # count of what a device holds is locked alone: less is counted when all is freed, and memory is asked for before.
  set(end_of_lock "#endif // !defined(GGML_USE_HIP) && !defined(GGML_USE_MUSA)\n\n")
  set(less "    std::lock_guard<std::mutex> lock(dev_ctx->device_mutex);\n    dev_ctx->active_count--;\n")
  set(asked "    ggml_cuda_set_device(ctx->device);\n    CUDA_CHECK(cudaMemGetInfo(free, total));\n")
  # Graphs are for the steps of Whisper's decoder, which alone name rows of a cache: what others compute has another
  # shape each time, and cuBLAS would ask for memory within a graph.
  set(graph_for_all "    bool use_cuda_graph = true;\n    // Loop over nodes in GGML graph to obtain info needed for CUDA graph\n")
  set(graph_for_steps "    bool use_cuda_graph = std::any_of(cgraph->nodes, cgraph->nodes + cgraph->n_nodes,\n                                      [](const ggml_tensor * node) { return node->op == GGML_OP_SET_ROWS; });\n")
  # A graph that has changed is made anew. One that was updated ended with "an illegal instruction was encountered" on an
  # H100 and an H200 (CUDA 13.0).
  set(made "        if (graph->instance == nullptr) { // Create executable graph from captured graph.\n            CUDA_CHECK(cudaGraphInstantiate(&graph->instance, graph->graph, NULL, NULL, 0));\n        }\n")
  set(updated "        if (cuda_graph_update_required) { // Update graph executable\n            ggml_cuda_graph_update_executable(cuda_ctx, graph_key);\n        }\n")
  set(destroyed "        if (cuda_graph_update_required && graph->instance != nullptr) {\n            CUDA_CHECK(cudaGraphExecDestroy(graph->instance)); graph->instance = nullptr;\n        }\n")
  voxgate_patched_source(ggml-cuda.cu "${WHISPER_SOURCE_DIR}/ggml/src/ggml-cuda/ggml-cuda.cu"
    1 "${less}${end_of_lock}    delete ctx;\n" "    delete ctx;\n${less}${end_of_lock}"
    1 "${less}${end_of_lock}    delete cuda_ctx;\n" "    delete cuda_ctx;\n${less}${end_of_lock}"
    1 "${less}${end_of_lock}    CUDA_CHECK(cudaFreeHost(buffer->context));\n"
      "    CUDA_CHECK(cudaFreeHost(buffer->context));\n${less}${end_of_lock}"
    1 "    std::lock_guard<std::mutex> lock(ctx->device_mutex);\n${end_of_lock}${asked}" "${end_of_lock}${asked}\n"
    1 "${graph_for_all}" "${graph_for_steps}"
    1 "${made}${updated}" "${destroyed}${made}"
    # Nothing waits for a capture to end: one that failed would never do so.
    1 "ggml_cuda_lock_counter.fetch_add(1, std::memory_order_relaxed);" "ggml_cuda_lock_counter.fetch_add(0, std::memory_order_relaxed);"
    1 "ggml_cuda_lock_counter.fetch_sub(1, std::memory_order_relaxed) == 1" "ggml_cuda_lock_counter.fetch_sub(0, std::memory_order_relaxed) == 1"
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
