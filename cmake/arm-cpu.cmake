# The levels of 64-bit ARM (native/kernels/cpu_level.h). All of them have the instructions of ARMv8.2 at most, and none
# computes in 16-bit floats or with SVE: a token must not depend on which of them a machine has.

set(VOXGATE_ARM_LEVELS neon neon_dotprod neon_i8mm)
set(VOXGATE_ARM_neon armv8-a)
set(VOXGATE_ARM_neon_dotprod armv8.2-a+dotprod)
set(VOXGATE_ARM_neon_i8mm armv8.2-a+dotprod+i8mm)

# The libraries of ggml that become those of the levels, on Linux and on macOS.
set(VOXGATE_ARM_VARIANTS armv8.0_1 armv8.2_1 armv8.6_1 apple_m1 apple_m2_m3)
set(VOXGATE_ARM_VARIANT_LEVELS neon neon_dotprod neon_i8mm neon_dotprod neon_i8mm)

# The best level of this machine.
function(voxgate_host_arm_level result)
  set(level neon)
  if(CMAKE_CROSSCOMPILING)
    # Nothing is known of the machine that it is for.
  elseif(APPLE)
    set(level neon_dotprod) # which all processors of Apple for computers have
    execute_process(COMMAND sysctl -n hw.optional.arm.FEAT_I8MM OUTPUT_VARIABLE has_i8mm ERROR_QUIET)
    if(has_i8mm MATCHES 1)
      set(level neon_i8mm)
    endif()
  elseif(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo features REGEX "^Features" LIMIT_COUNT 1)
    if(features MATCHES " asimddp( |$)")
      set(level neon_dotprod)
      if(features MATCHES " i8mm( |$)")
        set(level neon_i8mm)
      endif()
    endif()
  endif()
  set(${result} ${level} PARENT_SCOPE)
endfunction()

# Compiles ggml for a level, or for this machine.
function(voxgate_set_arm_level level)
  if(level STREQUAL "native")
    voxgate_host_arm_level(level)
  endif()
  if(NOT level IN_LIST VOXGATE_ARM_LEVELS)
    message(FATAL_ERROR "Expected native, all, or a level of ${VOXGATE_ARM_LEVELS} for VOXGATE_CPU but received ${level}")
  endif()
  set(GGML_NATIVE OFF CACHE BOOL "" FORCE)
  set(GGML_CPU_ARM_ARCH "${VOXGATE_ARM_${level}}" CACHE STRING "" FORCE)
  message(STATUS "CPU backend for ${VOXGATE_CPU}: ${level}")
endfunction()

# Makes one of ggml's libraries that of a level, which may have less than ggml gives it.
function(voxgate_arm_library target level)
  get_target_property(options ${target} COMPILE_OPTIONS)
  list(TRANSFORM options REPLACE "^-march=.*" "-march=${VOXGATE_ARM_${level}}")
  set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "${options}")
  # What its opinion of a processor depends on.
  get_target_property(asked ${target}-feats COMPILE_DEFINITIONS)
  list(REMOVE_ITEM asked GGML_USE_FP16_VECTOR_ARITHMETIC GGML_USE_SVE)
  set_target_properties(${target}-feats PROPERTIES COMPILE_DEFINITIONS "${asked}")
endfunction()
