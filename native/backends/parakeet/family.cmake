set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/parakeet_internals.cpp" PROPERTIES
  COMPILE_DEFINITIONS "PARAKEET_VERSION=\"${whisper_version}\"" COMPILE_OPTIONS "-w"
  OBJECT_DEPENDS "${VOXGATE_PATCHED}/src/parakeet.cpp")
