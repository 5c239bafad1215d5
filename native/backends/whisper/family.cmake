# whisper_internals.cpp holds the table that says where our code stands in front of whisper.cpp's (native/patches).
set_source_files_properties("${CMAKE_CURRENT_LIST_DIR}/whisper_internals.cpp" PROPERTIES
  COMPILE_DEFINITIONS "WHISPER_VERSION=\"${whisper_version}\"" COMPILE_OPTIONS "-w"
  OBJECT_DEPENDS "${VOXGATE_PATCHED}/src/whisper.cpp")
