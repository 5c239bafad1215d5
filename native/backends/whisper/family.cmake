# whisper_internals.cpp compiles whisper.cpp itself, with the patches of native/patches.
set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/whisper_internals.cpp" PROPERTIES
  COMPILE_DEFINITIONS "WHISPER_VERSION=\"${whisper_version}\"" COMPILE_OPTIONS "-w"
  OBJECT_DEPENDS "${VOXGATE_PATCHED}/src/whisper.cpp")
