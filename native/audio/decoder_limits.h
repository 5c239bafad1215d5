#pragma once

#include "cancel.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace voxgate {

// What the decoder of one file may take. The sizes in a file are chosen by its author and they multiply: a
// Vorbis header of 3 kB can ask for 50 GB of tables. What is refused here looks to the decoder like a full
// memory or the end of the file, so it gives up in its own way.
//
// It also owns the memory: stb_vorbis leaks what it holds when a file turns out to be broken half way through
// its tables. Here that is freed with the file at the latest.
class DecoderLimits {
 public:
  // Over all blocks that are held at a time. Real files take less than 1 MiB, and their cover art.
  static constexpr size_t kMaxBytes = size_t{32} << 20;
  static constexpr size_t kMaxBlocks = size_t{1} << 16;
  // Over all codebooks of a Vorbis file, because each entry is sorted and each value computed. The largest
  // set-ups that libvorbis and FFmpeg write have 20 000 entries and 90 000 values.
  static constexpr uint64_t kMaxEntries = uint64_t{1} << 18;
  static constexpr uint64_t kMaxValues = uint64_t{1} << 21;
  // Of one Scope, on the processor. Some milliseconds are usual, but a decoder may look for its next frame
  // through gigabytes.
  static constexpr std::chrono::milliseconds kMaxTime{1000};

  // While it lives, the decoders this thread calls work under these limits, and stop soon after `cancel` is
  // set. Around every call into them, also the closing.
  class Scope {
   public:
    Scope(DecoderLimits& limits, const CancelToken& cancel);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    DecoderLimits* before_;
  };

  // Those of the Scope on this thread; null outside of any.
  static DecoderLimits* current() noexcept;

  void* allocate(size_t size) noexcept; // zeroed; null when there is no more
  void* reallocate(void* block, size_t size) noexcept;
  void release(void* block) noexcept; // any pointer; what is not held is left alone

  // False when the file's codebooks are too large, this one included.
  bool admit_codebook(uint64_t entries, uint64_t dimensions) noexcept;
  // Asked for each read of the file. False when the decoder has to stop.
  bool admit_input() const noexcept;

 private:
  struct Free {
    void operator()(void* block) const noexcept;
  };
  struct Block {
    std::unique_ptr<void, Free> memory;
    size_t size;
  };

  std::unordered_map<void*, Block> blocks_;
  size_t bytes_ = 0;
  uint64_t entries_ = 0;
  uint64_t values_ = 0;
  std::chrono::nanoseconds until_{0}; // of this thread's processor time
  const CancelToken* cancel_ = nullptr;
};

} // namespace voxgate

// What the hardened copy of stb_vorbis calls (cmake/stb-vorbis.cmake). Outside of a Scope nothing can be
// allocated or read.
void* voxgate_vorbis_allocate(size_t size);
void voxgate_vorbis_release(void* block);
int voxgate_vorbis_codebook(int entries, int dimensions);
int voxgate_vorbis_page();
