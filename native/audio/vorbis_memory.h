#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

namespace voxgate {

// Everything stb_vorbis allocates for one file. It leaks what it holds when a file turns out to be broken
// half way through its tables, up to megabytes a file; here that is freed with the file at the latest.
class VorbisMemory {
 public:
  // While it lives, this thread's stb_vorbis uses that memory. Around every call into the decoder, also the
  // closing.
  class Scope {
   public:
    explicit Scope(VorbisMemory& memory);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    VorbisMemory* before_;
  };

  void* allocate(size_t size) noexcept; // zeroed; null when there is no more
  void release(void* block) noexcept;

 private:
  std::unordered_map<void*, std::unique_ptr<std::byte[]>> blocks_;
};

} // namespace voxgate

// What the hardened copy of stb_vorbis calls (cmake/stb-vorbis.cmake). Outside of a Scope nothing can be
// allocated.
void* voxgate_vorbis_allocate(size_t size);
void voxgate_vorbis_release(void* block);
