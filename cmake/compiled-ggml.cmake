# ggml as the native tests have compiled it, for the fuzz targets: it is neither instrumented nor compiled once more,
# which would take minutes. Its interface is C, so that another compiler's objects fit.
add_library(ggml INTERFACE)
target_include_directories(ggml INTERFACE "${WHISPER_SOURCE_DIR}/ggml/include")
foreach(library voxgate-ggml ggml-cpu voxgate-ggml-base)
  target_link_libraries(ggml INTERFACE "${VOXGATE_GGML}/ggml/src/lib${library}.a")
endforeach()
# the runtime of its threads
target_link_libraries(ggml INTERFACE gomp m)
