#include "audio/decoder_input.h"

#include "audio/decoder_limits.h"

#include <algorithm>
#include <utility>

namespace voxgate {
namespace {

// A FLAC and its first metadata block, which all have (RFC 9639, sections 8.1 and 8.2).
constexpr std::string_view kFlacMark{"fLaC\0\0\0\x22", 8};

} // namespace

DecoderInput::DecoderInput(FilePtr file, uint64_t file_bytes, bool may_be_joined)
    : file_(std::move(file)), size_(static_cast<long>(file_bytes)), end_(size_),
      may_be_joined_(may_be_joined) {
  calls_.onOpen = [](ma_vfs* self, const char*, ma_uint32, ma_vfs_file* handle) {
    *handle = self;
    return MA_SUCCESS;
  };
  calls_.onClose = [](ma_vfs*, ma_vfs_file) { return MA_SUCCESS; };
  calls_.onRead = on_read;
  calls_.onSeek = on_seek;
  calls_.onTell = [](ma_vfs*, ma_vfs_file handle, ma_int64* offset) {
    const auto& input = *static_cast<const DecoderInput*>(handle);
    *offset = std::ftell(input.file_.get()) - input.begin_;
    return *offset < 0 ? MA_IO_ERROR : MA_SUCCESS;
  };
}

ma_result DecoderInput::on_read(ma_vfs*, ma_vfs_file handle, void* to, size_t bytes, size_t* read) {
  const auto* limits = DecoderLimits::current();
  const bool may_read = limits != nullptr && limits->admit_input();
  *read = may_read ? static_cast<DecoderInput*>(handle)->read(to, bytes) : 0;
  return *read > 0 ? MA_SUCCESS : MA_AT_END;
}

// A chunk of WAV that is shorter than its content makes miniaudio skip 2^64 bytes, in thousands of millions
// of steps. None begins behind the end of the file.
ma_result DecoderInput::on_seek(ma_vfs*, ma_vfs_file handle, ma_int64 offset, ma_seek_origin origin) {
  const auto& input = *static_cast<const DecoderInput*>(handle);
  const auto* limits = DecoderLimits::current();
  std::FILE* file = input.file_.get();
  const bool behind_end = origin == ma_seek_origin_current && offset > 0 && std::ftell(file) > input.size_;
  if (behind_end || limits == nullptr || !limits->admit_input())
    return MA_BAD_SEEK;
  const int whence = origin == ma_seek_origin_start ? SEEK_SET
                     : origin == ma_seek_origin_end ? SEEK_END
                                                    : SEEK_CUR;
  const long from = origin == ma_seek_origin_start ? input.begin_ : 0;
  return std::fseek(file, from + static_cast<long>(offset), whence) == 0 ? MA_SUCCESS : MA_BAD_SEEK;
}

bool DecoderInput::next() {
  if (next_ == 0)
    return false;
  begin_ = next_;
  next_ = 0;
  end_ = size_;
  return std::fseek(file_.get(), begin_, SEEK_SET) == 0;
}

size_t DecoderInput::read(void* to, size_t bytes) {
  const long at = std::ftell(file_.get());
  if (at < 0 || at >= end_)
    return 0;
  const auto most = static_cast<size_t>(end_ - at);
  const size_t got = std::fread(to, 1, std::min(bytes, most), file_.get());
  if (may_be_joined_)
    find_next({static_cast<const char*>(to), got}, at);
  return std::min(got, static_cast<size_t>(end_ - at));
}

// Looks for the start of another file in what was read, also across two reads.
void DecoderInput::find_next(std::string_view bytes, long at) {
  if (at != tail_end_)
    tail_.clear();
  const long from = at - static_cast<long>(tail_.size());
  tail_.append(bytes);
  for (size_t found = tail_.find(kFlacMark); found != std::string::npos && next_ == 0;
       found = tail_.find(kFlacMark, found + 1)) {
    const long place = from + static_cast<long>(found);
    if (first_ < 0)
      first_ = place;
    if (place <= std::max(begin_, first_))
      continue;
    next_ = place;
    end_ = std::max(place, at); // the bytes of it that an earlier read gave are the begin of no frame
  }
  tail_.erase(0, tail_.size() - std::min(tail_.size(), kFlacMark.size() - 1));
  tail_end_ = at + static_cast<long>(bytes.size());
}

} // namespace voxgate
