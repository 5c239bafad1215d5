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
  # A destructor frees a backend, and no exception leaves one: where the device fails then, ggml shall abort, which is
  # caught (native/backends/gpu_guard.h).
  voxgate_patched_source(ggml-vulkan.cpp "${WHISPER_SOURCE_DIR}/ggml/src/ggml-vulkan/ggml-vulkan.cpp"
    1 "    ggml_vk_cleanup(ctx);

    delete ctx;"
    "    try { ggml_vk_cleanup(ctx); } catch (const vk::SystemError & e) { GGML_ABORT(\"Vulkan error: %s\", e.what()); }

    delete ctx;"
    # A set of descriptors is used again by pipelines that read fewer buffers. What it still names beyond those may be
    # freed, and Mesa's software driver reads every entry of a set, so all of them are written.
    1 "    GGML_ASSERT(pipeline->push_constant_size == push_constant_size(push_constants));

    vk::DescriptorSet& descriptor_set = ctx->descriptor_sets[ctx->descriptor_set_idx++];
    vk::WriteDescriptorSet write_descriptor_set{ descriptor_set, 0, 0, pipeline->parameter_count, vk::DescriptorType::eStorageBuffer, nullptr, descriptor_buffer_infos.begin() };"
    "    std::array<vk::DescriptorBufferInfo, MAX_PARAMETER_COUNT> every_buffer; every_buffer.fill(*descriptor_buffer_infos.begin());
    std::copy(descriptor_buffer_infos.begin(), descriptor_buffer_infos.end(), every_buffer.begin());
    vk::DescriptorSet& descriptor_set = ctx->descriptor_sets[ctx->descriptor_set_idx++];
    vk::WriteDescriptorSet write_descriptor_set{ descriptor_set, 0, 0, MAX_PARAMETER_COUNT, vk::DescriptorType::eStorageBuffer, nullptr, every_buffer.data() };")
  get_target_property(sources ggml-vulkan SOURCES)
  list(REMOVE_ITEM sources ggml-vulkan.cpp)
  list(APPEND sources "${VOXGATE_GENERATED}/patched/ggml-vulkan.cpp")
  set_target_properties(ggml-vulkan PROPERTIES SOURCES "${sources}")
  # The source names two types that the headers of older systems lack.
  target_compile_options(ggml-vulkan PRIVATE
    "SHELL:-include \"${CMAKE_CURRENT_SOURCE_DIR}/native/backends/vulkan_headers.h\"")
endfunction()
