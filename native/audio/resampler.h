#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace voxgate {

// The low-pass filters of a polyphase resampler to 16 kHz: a sinc under a Kaiser window (J. O. Smith,
// "Digital Audio Resampling Home Page", CCRMA). Amplitudes are kept up to 85 % of the lower Nyquist
// frequency and halved at 92 % of it. Above 108 % of it images and aliases are 65 dB down.
class ResamplingFilters {
 public:
  // `rate` is from 2000 to 384000 Hz. The filters take 3.5 MB at most.
  explicit ResamplingFilters(int rate);

  // The sample of 16 kHz that lies `phase / up()` of an input sample behind `input[before()]`. Reads `taps()`
  // samples.
  float at(uint64_t phase, const float* input) const;

  // An output sample lies `down() / up()` input samples behind the one before it.
  uint64_t up() const { return up_; }
  uint64_t down() const { return down_; }
  size_t before() const { return half_ - 1; }
  size_t taps() const { return taps_; }

 private:
  uint64_t up_;
  uint64_t down_;
  size_t half_; // input samples on each side that count
  size_t taps_;
  uint64_t rows_; // phases that have a filter; between two of them the filters are interpolated
  std::vector<float> weights_;
};

// Converts mono samples of any rate to 16 kHz, block by block. The blocks join without a seam, and the whole
// output lasts exactly as long as the input, rounded to a sample.
class Resampler {
 public:
  explicit Resampler(int rate);

  // Appends the samples of 16 kHz that are known by now.
  void process(std::span<const float> input, std::vector<float>& output);
  // Ends the input and appends the samples that are still in the filter.
  void finish(std::vector<float>& output);
  // Begins another recording after `finish`. Its rate may be another one.
  void begin(int rate);

 private:
  void run(std::span<const float> input, std::vector<float>& output);

  int rate_ = 0;
  uint64_t consumed_ = 0;
  uint64_t produced_ = 0;
  // The filters of each rate that came, so that a file that changes it with every frame costs no more.
  std::map<int, ResamplingFilters> known_;
  const ResamplingFilters* filters_ = nullptr; // null if the input already has 16 kHz
  std::vector<float> held_;                    // input that later samples need
  uint64_t phase_ = 0;
};

} // namespace voxgate
