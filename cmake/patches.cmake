# Some sources of whisper.cpp, ggml and stb_vorbis are compiled from a copy in the build folder, which the patches of
# native/patches/ have changed. Each patch has its reason at its top. They are applied in the order of their names, and
# exactly: one that no longer fits the source ends the configuration with its name.
#
#   voxgate_apply_patches(SOURCE TARGET PATCH...)
#
# writes the files that the patches change to TARGET, under the paths that they have in SOURCE. A file whose text stays
# as it was is not written, so that nothing is compiled again.

set(VOXGATE_GENERATED "${CMAKE_BINARY_DIR}/generated")
set(VOXGATE_PATCHED "${VOXGATE_GENERATED}/patched")
set(VOXGATE_STB_VORBIS "${VOXGATE_PATCHED}/examples/stb_vorbis.c")

function(voxgate_apply_patches source target)
  find_program(VOXGATE_GIT git)
  find_program(VOXGATE_PATCH patch)
  # Without the ceiling git would take the paths for those of the repository that this project lies in.
  if(VOXGATE_GIT)
    get_filename_component(parent "${target}" DIRECTORY)
    set(ENV{GIT_CEILING_DIRECTORIES} "${parent}")
    set(apply "${VOXGATE_GIT}" apply --whitespace=nowarn)
  elseif(VOXGATE_PATCH)
    set(apply "${VOXGATE_PATCH}" --strip=1 --fuzz=0 --batch --silent --input)
  else()
    message(FATAL_ERROR "git or patch is needed to compile the native addon, and neither was found")
  endif()

  set(work "${target}.new")
  file(REMOVE_RECURSE "${work}")
  set(changed "")
  foreach(patch IN LISTS ARGN)
    file(STRINGS "${patch}" names REGEX "^\\+\\+\\+ b/")
    foreach(name IN LISTS names)
      string(SUBSTRING "${name}" 6 -1 name)
      if(NOT name IN_LIST changed)
        list(APPEND changed "${name}")
        get_filename_component(folder "${work}/${name}" DIRECTORY)
        file(MAKE_DIRECTORY "${folder}")
        file(COPY_FILE "${source}/${name}" "${work}/${name}")
      endif()
    endforeach()
    execute_process(COMMAND ${apply} "${patch}" WORKING_DIRECTORY "${work}"
      RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
    if(failed)
      message(FATAL_ERROR "${patch} does not fit the sources in ${source}, which are not those that this project was "
                          "written for:\n${said}")
    endif()
  endforeach()
  foreach(name IN LISTS changed)
    get_filename_component(folder "${target}/${name}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    file(COPY_FILE "${work}/${name}" "${target}/${name}" ONLY_IF_DIFFERENT)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}/${name}")
  endforeach()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  file(REMOVE_RECURSE "${work}")
endfunction()
