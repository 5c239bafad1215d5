# ggml's Vulkan backend becomes a library of its own, which is loaded at run time: a machine without a Vulkan driver
# leaves it aside and computes on the CPU. scripts/build-vulkan.mjs calls this.

set(GGML_VULKAN ON CACHE BOOL "" FORCE)
set(GGML_CPU OFF CACHE BOOL "" FORCE)
# For tests, which compute in floats: the library is compiled in a tenth of the time.
option(VOXGATE_VULKAN_FLOATS "Leave out the shaders for quantized weights, and do not optimize" OFF)
if(VOXGATE_VULKAN_FLOATS)
  set(Vulkan_GLSLC_EXECUTABLE "${CMAKE_CURRENT_SOURCE_DIR}/cmake/vulkan-floats/glslc" CACHE FILEPATH "" FORCE)
  set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
endif()

# This runs after ggml's own files.
function(voxgate_finish_vulkan)
  get_target_property(sources ggml-vulkan SOURCES)
  list(REMOVE_ITEM sources ggml-vulkan.cpp)
  list(APPEND sources "${VOXGATE_PATCHED}/ggml/src/ggml-vulkan/ggml-vulkan.cpp")
  set_target_properties(ggml-vulkan PROPERTIES SOURCES "${sources}")
  # The source names two types that the headers of older systems lack.
  target_compile_options(ggml-vulkan PRIVATE
    "SHELL:-include \"${CMAKE_CURRENT_SOURCE_DIR}/native/backends/vulkan_headers.h\"")
endfunction()
