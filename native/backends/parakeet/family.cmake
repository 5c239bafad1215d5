set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/parakeet_internals.cpp" PROPERTIES
  COMPILE_DEFINITIONS "PARAKEET_VERSION=\"${whisper_version}\"" COMPILE_OPTIONS "-w")

# The repair in parakeet_internals.cpp redefines this name and must meet it in one place only. A version that has none
# has been repaired itself.
file(READ "${WHISPER_SOURCE_DIR}/src/parakeet.cpp" parakeet_source)
string(REGEX MATCHALL "ggml_graph_node|ggml_set_name\\(logits, \"logits\"\\)" parakeet_marks "${parakeet_source}")
if(NOT parakeet_marks STREQUAL "ggml_set_name(logits, \"logits\");ggml_graph_node")
  message(FATAL_ERROR "src/parakeet.cpp of ${WHISPER_SOURCE_DIR} is not the one that "
                      "native/backends/parakeet/parakeet_internals.cpp repairs; found: ${parakeet_marks}")
endif()
