# stb_vorbis allocates with sizes that it computes from the file and passes as int: a crafted file makes them overflow
# and then writes past a small block, and after a failed allocation it frees pointers it never set. Its two allocators
# are therefore replaced, in a copy in the build folder, so that the size arrives unharmed and is bounded, and the
# memory is zero. Its other multiplications ask native/audio/decoder_limits.h first.

set(VOXGATE_STB_VORBIS "${CMAKE_BINARY_DIR}/generated/stb_vorbis.c")

# This replaces one piece of code; a source without that piece is not the one this was written for.
function(voxgate_replace code_variable old new)
  string(FIND "${${code_variable}}" "${old}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "stb_vorbis.c in ${WHISPER_SOURCE_DIR} is not the one that is hardened here; it lacks: ${old}")
  endif()
  string(REPLACE "${old}" "${new}" changed "${${code_variable}}")
  set(${code_variable} "${changed}" PARENT_SCOPE)
endfunction()

file(READ "${WHISPER_SOURCE_DIR}/examples/stb_vorbis.c" stb_vorbis_code)
foreach(allocator setup_malloc setup_temp_malloc)
  voxgate_replace(stb_vorbis_code
    "static void *${allocator}(vorb *f, int sz)\n{"
    "static void *${allocator}(vorb *f, size_t size)\n{\n   int sz = (int) size;\n   if (size > (1u << 26)) return NULL;")
endforeach()
voxgate_replace(stb_vorbis_code "return sz ? malloc(sz) : NULL;" "return sz ? voxgate_vorbis_allocate(sz) : NULL;")
voxgate_replace(stb_vorbis_code "return malloc(sz);" "return voxgate_vorbis_allocate(sz);")
voxgate_replace(stb_vorbis_code "   free(p);\n" "   voxgate_vorbis_release(p);\n")
voxgate_replace(stb_vorbis_code
  "if (f->comment_list == NULL)                  return error(f, VORBIS_outofmem);"
  "if (f->comment_list == NULL) { f->comment_list_length = 0; return error(f, VORBIS_outofmem); }")
# These are the tables of a codebook.
voxgate_replace(stb_vorbis_code
  "if (c->dimensions == 0 && c->entries != 0)    return error(f, VORBIS_invalid_setup);"
  "if (c->dimensions == 0 && c->entries != 0)    return error(f, VORBIS_invalid_setup);
      if (!voxgate_vorbis_codebook(c->entries, c->dimensions)) return error(f, VORBIS_invalid_setup);")
# Twice this much lies on the stack while a packet is decoded, and some systems give a thread 128 kB.
voxgate_replace(stb_vorbis_code "f->temp_memory_required = classify_mem;"
  "if (classify_mem > (1u << 15)) return error(f, VORBIS_invalid_setup);
      f->temp_memory_required = classify_mem;")
# Each page is checked, because pages without samples may go on for gigabytes.
voxgate_replace(stb_vorbis_code "   f->next_seg = 0;\n   return TRUE;\n}\n\nstatic int start_page(vorb *f)"
  "   f->next_seg = 0;
   return voxgate_vorbis_page() ? TRUE : error(f, VORBIS_unexpected_eof);
}\n\nstatic int start_page(vorb *f)")

# A crafted file reaches more places: a codebook without code words has no table to look into; a mapping of 16
# submaps has one more than there is room for; and the rest of a vector at the end of a channel was counted from the
# wrong side.
voxgate_replace(stb_vorbis_code
  "if (c->sparse) var = c->sorted_values[var];" "if (c->sparse && var >= 0) var = c->sorted_values[var];")
foreach(list submap_floor submap_residue)
  voxgate_replace(stb_vorbis_code "uint8  ${list}[15];" "uint8  ${list}[16];")
endforeach()
voxgate_replace(stb_vorbis_code
  "effective = len*ch - (p_inter*ch - c_inter);" "effective = len*ch - (p_inter*ch + c_inter);")
# A power that is too large for an integer became the smallest one there, and a codebook of many dimensions got one value
# too many.
voxgate_replace(stb_vorbis_code "(int) floor(pow((float) r+1, dim)) <= entries" "floor(pow((float) r+1, dim)) <= entries")
voxgate_replace(stb_vorbis_code "(int) floor(pow((float) r, dim)) > entries" "floor(pow((float) r, dim)) > entries")
file(CONFIGURE OUTPUT "${VOXGATE_STB_VORBIS}" CONTENT "@stb_vorbis_code@" @ONLY)
