#include "models/checked_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace voxgate {

// The library does not look at the result. Bytes that are missing are zeros, and require_unchanged finds that
// the file was cut.
size_t CheckedFile::read(char* to, size_t size) {
  size_t done = 0;
  while (done < size && position_ < reader_.size()) {
    const auto after = checked_.upper_bound(position_);
    const auto before = after == checked_.begin() ? checked_.end() : std::prev(after);
    const bool is_checked = before != checked_.end() && position_ - before->first < before->second.size();
    const uint64_t end = is_checked                ? before->first + before->second.size()
                         : after == checked_.end() ? reader_.size()
                                                   : after->first;
    const auto count = static_cast<size_t>(std::min<uint64_t>(size - done, end - position_));
    if (is_checked)
      std::memcpy(to + done, before->second.data() + (position_ - before->first), count);
    else
      reader_.read_at(position_, to + done, count);
    position_ += count;
    done += count;
  }
  at_end_ = at_end_ || done < size;
  std::memset(to + done, 0, size - done);
  return done;
}

} // namespace voxgate
