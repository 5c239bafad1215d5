#pragma once

#include "audio/miniaudio_config.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace voxgate {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

// An open file that miniaudio's decoders can read, within the limits of the Scope on the thread. Of FLAC
// files that were joined the decoder sees one at a time: each has a rate and channels of its own.
class DecoderInput {
 public:
  DecoderInput(FilePtr file, uint64_t file_bytes, bool may_be_joined);

  // What miniaudio opens.
  ma_vfs_callbacks* vfs() { return &calls_; }
  // Goes on to the next of the joined files; false after the last one.
  bool next();

 private:
  static ma_result on_read(ma_vfs* self, ma_vfs_file handle, void* to, size_t bytes, size_t* read);
  static ma_result on_seek(ma_vfs* self, ma_vfs_file handle, ma_int64 offset, ma_seek_origin origin);

  size_t read(void* to, size_t bytes);
  void find_next(std::string_view bytes, long at);

  ma_vfs_callbacks calls_{}; // must be the first member, because miniaudio looks for the functions there
  FilePtr file_;
  long size_;      // in bytes
  long begin_ = 0; // of the part that is read
  long end_;       // of that part, as far as is known
  bool may_be_joined_;
  long first_ = -1; // where the first file begins, after its tags
  long next_ = 0;   // where the next one begins; 0 as long as none is known
  std::string tail_;
  long tail_end_ = 0;
};

} // namespace voxgate
