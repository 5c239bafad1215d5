#pragma once

#include "cancel.h"

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace voxgate {

// What the addon decodes. The gateway recognizes the files (`src/audio/sniff.ts`).
enum class AudioFormat { wav, mp3, flac, vorbis };
inline constexpr std::array<const char*, 4> kAudioFormatNames{"wav", "mp3", "flac", "vorbis"};

// An audio file that is read from front to back as 16 kHz mono float32: finite, in -1..1, the average of the
// file's channels (or half the difference of two that cancel each other in it) or one of them. Only one
// thread at a time may use it. Any bytes lead to Failure{bad_audio} at worst, at a bounded cost
// (audio/decoder_limits.h). What is damaged in the middle of a file is silent, so that what follows has its
// time, and `losses` has its place.
//
// Each call throws Failure{cancelled} soon after its token is set. Later calls throw Failure{closed}, because
// the decoder was stopped in the middle of a block.
class AudioFile {
 public:
  struct Info {
    int sample_rate;
    int channels;
    double duration_sec; // the duration in the header; negative if only decoding would show it
  };

  // Audio that the file should have and that cannot be read.
  struct Loss {
    double start_sec;
    double end_sec;
  };

  static constexpr int kAllChannels = -1;
  static constexpr int kMaxChannels = 32;

  // Also decodes the first block, so that a file without samples fails here. `channel` counts from 0. A file
  // that has no such channel gives the average of all, and its info says how many it has.
  AudioFile(const std::string& path, AudioFormat format, const CancelToken& cancel = {},
            int channel = kAllChannels);
  ~AudioFile();

  const Info& info() const { return info_; }
  // What was lost in the samples so far. At the end of the file also what its header names beyond them.
  const std::vector<Loss>& losses() const;

  // Decodes for about 50 ms at most. True if `samples` samples, or all that are left, can be taken.
  bool decode(size_t samples, const CancelToken& cancel = {});
  // Each returns up to `max_samples` decoded samples. A file of two channels also has half the difference of
  // the two, which must be taken with them; for any other file `take_sides` returns none.
  std::vector<float> take(size_t max_samples);
  std::vector<float> take_sides(size_t max_samples);

  // Decodes and returns the next `max_samples` samples; fewer only at the end, and none after it.
  std::vector<float> read(size_t max_samples, const CancelToken& cancel = {});

 private:
  class Decoder;

  std::unique_ptr<Decoder> decoder_;
  Info info_{};
  std::vector<float> ready_; // decoded samples that were not taken yet
  std::vector<float> ready_sides_;
  bool at_end_ = false;
  bool cut_off_ = false; // true after an abort in the middle of a block
};

} // namespace voxgate
