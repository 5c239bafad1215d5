#pragma once

#include "audio/format.h"
#include "cancel.h"

#include <memory>
#include <string>
#include <vector>

namespace voxgate {

// One audio file, read from front to back as 16 kHz mono float32: finite, within -1..1, the average of the
// file's channels. A file is used by one thread at a time. Whatever the bytes are, the worst outcome is
// Failure{bad_audio}, for a bounded price (audio/decoder_limits.h); a file that breaks off or turns to
// garbage ends where decoding stopped.
//
// Each call throws Failure{cancelled} soon after its token is set, and later calls Failure{closed}: the
// decoder was cut off in the middle.
class AudioFile {
 public:
  struct Info {
    AudioFormat format;
    int sample_rate;
    int channels;
    double duration_sec; // as the header says; negative when only decoding would tell
  };

  // Decodes the first block already, so that a file without a single sample fails here.
  explicit AudioFile(const std::string& path, const CancelToken& cancel = {});
  ~AudioFile();

  const Info& info() const { return info_; }

  // Decodes for some 50 ms at most. True when `samples`, or all that are left, can be taken.
  bool decode(size_t samples, const CancelToken& cancel = {});
  // What is decoded, up to `max_samples`.
  std::vector<float> take(size_t max_samples);

  // The next samples, fewer than asked for only at the end, none after it.
  std::vector<float> read(size_t max_samples, const CancelToken& cancel = {});

 private:
  class Decoder;

  std::unique_ptr<Decoder> decoder_;
  Info info_{};
  std::vector<float> ready_; // converted, not handed out yet
  bool at_end_ = false;
  bool cut_off_ = false; // in the middle of a block
};

} // namespace voxgate
