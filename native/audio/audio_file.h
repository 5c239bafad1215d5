#pragma once

#include "audio/format.h"

#include <memory>
#include <string>
#include <vector>

namespace voxgate {

// One audio file, read from front to back as 16 kHz mono float32: finite, within -1..1, the average of the
// file's channels. A file is used by one thread at a time. Whatever the bytes are, the worst outcome is
// Failure{bad_audio}; a file that breaks off or turns to garbage ends where decoding stopped.
class AudioFile {
 public:
  struct Info {
    AudioFormat format;
    int sample_rate;
    int channels;
    double duration_sec; // as the header says; negative when only decoding would tell
  };

  // Decodes the first block already, so that a file without a single sample fails here.
  explicit AudioFile(const std::string& path);
  ~AudioFile();

  const Info& info() const { return info_; }

  // The next samples, fewer than asked for only at the end, none after it.
  std::vector<float> read(size_t max_samples);

 private:
  class Decoder;
  void decode_block();

  std::unique_ptr<Decoder> decoder_;
  Info info_{};
  std::vector<float> ready_; // converted, not handed out yet
  bool at_end_ = false;
};

} // namespace voxgate
