# Some sources of whisper.cpp are compiled from a copy in the build folder in which a few pieces are replaced, so that
# code of ours is called where theirs was. Each piece must occur exactly as often as it did when the replacement was
# written: another version of the source fails here, and never compiles with its own code in silence.
#
#   voxgate_patched_source(NAME SOURCE  COUNT OLD NEW  [COUNT OLD NEW]...)
#
# writes generated/patched/NAME below the build folder. No line is added or removed, so that line numbers stay.

set(VOXGATE_GENERATED "${CMAKE_BINARY_DIR}/generated")

function(voxgate_patched_source name source)
  file(READ "${source}" code)
  set(index 2)
  while(index LESS ARGC)
    math(EXPR old_index "${index} + 1")
    math(EXPR new_index "${index} + 2")
    set(count "${ARGV${index}}")
    set(old "${ARGV${old_index}}")
    set(new "${ARGV${new_index}}")
    math(EXPR index "${index} + 3")

    # CMake can replace but not count, so the difference in length tells how often the piece occurs.
    string(REPLACE "${old}" "" without "${code}")
    string(LENGTH "${code}" length)
    string(LENGTH "${without}" length_without)
    string(LENGTH "${old}" length_old)
    math(EXPR found "(${length} - ${length_without}) / ${length_old}")
    if(NOT found EQUAL count)
      message(FATAL_ERROR "${source} is not the one that this project was written for: expected ${count} times, but "
                          "found ${found} times:\n${old}")
    endif()
    string(REPLACE "${old}" "${new}" code "${code}")
  endwhile()
  file(CONFIGURE OUTPUT "${VOXGATE_GENERATED}/patched/${name}" CONTENT "@code@" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
endfunction()
