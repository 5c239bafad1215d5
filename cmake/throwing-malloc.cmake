# Leads what a library calls of malloc to native/backends/throwing_malloc.cpp, which is a part of ggml-base. Only the
# linkers of Linux have --wrap. The tests and the fuzz targets are linked statically, and their sanitizer has a malloc of
# its own.
function(voxgate_throwing_malloc target)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT VOXGATE_TESTS AND NOT VOXGATE_FUZZ)
    target_compile_definitions(${target} PRIVATE VOXGATE_THROWING_MALLOC)
    target_link_options(${target} PRIVATE "-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=posix_memalign")
  endif()
endfunction()
