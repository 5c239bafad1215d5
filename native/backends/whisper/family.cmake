set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/whisper_internals.cpp" PROPERTIES
  COMPILE_DEFINITIONS "WHISPER_VERSION=\"${whisper_version}\"" COMPILE_OPTIONS "-w")
