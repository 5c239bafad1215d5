#pragma once

#include "cancel.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace voxgate {

// Limits the memory and time of the decoder of one file. The author of a file chooses its sizes, and they
// multiply: a Vorbis header of 3 kB can demand 50 GB of tables. A refusal looks to the decoder like full
// memory or the end of the file, so it fails in its own way.
//
// It also owns the memory, because stb_vorbis leaks its memory when a file is damaged in the middle of its
// tables. Here that memory is freed with the file at the latest.
class DecoderLimits {
 public:
  // The limits for all blocks that are held at a time. Real files take less than 1 MiB and their cover art.
  static constexpr size_t kMaxBytes = size_t{32} << 20;
  static constexpr size_t kMaxBlocks = size_t{1} << 16;
  // The limits for all codebooks of a Vorbis file, because each entry is sorted and each value computed. The
  // largest set-ups that libvorbis and FFmpeg write have 20 000 entries and 90 000 values.
  static constexpr uint64_t kMaxEntries = uint64_t{1} << 18;
  static constexpr uint64_t kMaxValues = uint64_t{1} << 21;
  // The processor time of one Scope. A few milliseconds are usual, but a decoder may search gigabytes for its
  // next frame.
  static constexpr std::chrono::milliseconds kMaxTime{1000};

  // While a Scope exists, the decoders that this thread calls have these limits, and stop soon after `cancel`
  // is set. Every call of a decoder needs a Scope, also the one that closes it.
  class Scope {
   public:
    Scope(DecoderLimits& limits, const CancelToken& cancel);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    DecoderLimits* before_;
  };

  // The limits of the Scope on this thread; null if there is no Scope.
  static DecoderLimits* current() noexcept;

  void* allocate(size_t size) noexcept; // zeroed memory; null if a limit is reached
  void* reallocate(void* block, size_t size) noexcept;
  void release(void* block) noexcept; // ignores pointers that allocate() did not return

  // False if the codebooks of the file, including this one, are too large.
  bool admit_codebook(uint64_t entries, uint64_t dimensions) noexcept;
  // Called before each read of the file. False if the decoder has to stop.
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
  std::chrono::nanoseconds until_{0}; // the processor time of this thread at which the Scope has to stop
  const CancelToken* cancel_ = nullptr;
};

} // namespace voxgate

// The hardened copy of stb_vorbis calls these functions (native/patches/stb_vorbis). Without a Scope they
// refuse every allocation and every read.
void* voxgate_vorbis_allocate(size_t size);
void voxgate_vorbis_release(void* block);
int voxgate_vorbis_codebook(int entries, int dimensions);
int voxgate_vorbis_page();
