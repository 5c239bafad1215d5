#pragma once

#include "cancel.h"
#include "layers/network_weights.h"
#include "layers/panels.h"
#include "layers/team.h"

#include <array>
#include <span>
#include <vector>

namespace voxgate {

// The first part of pyannote's segmentation: band-pass filters (SincNet, https://arxiv.org/abs/1808.00158)
// and two convolutions, from the samples of a window to its frames.
//
// Windows overlap, but each is normalized by itself. The filters are linear, so they are applied once to the
// samples as they are; a window takes from these frames what it shares with others, and normalizes it.
class WindowEncoder {
 public:
  static constexpr size_t kWindow = 160000; // samples at 16 kHz
  static constexpr size_t kFrames = 589;    // of a window, one every 270 samples
  static constexpr size_t kChannels = 60;   // of a frame

  explicit WindowEncoder(NetworkWeights& weights);

  // Begins with windows of other samples, `step` apart. The samples must live until the last window.
  void start(std::span<const float> samples, size_t step);

  // Encodes the next `count` windows. The frames of each begin at frame(0, window) to frame(kFrames - 1,
  // window), of which window 0 is the next one.
  template <typename Frame>
  void encode(size_t count, const Team& team, const Frame& frame, const CancelToken& cancel) {
    for (size_t done = 0; done < count;) {
      const size_t together = prepare(count - done, team, cancel);
      team.share(together, [&](size_t i) {
        const float* encoded = encode_one(i, cancel);
        for (size_t at = 0; at < kFrames; ++at)
          std::copy_n(encoded + at * kChannels, kChannels, frame(at, done + i));
      });
      done += together;
      next_ += together;
    }
  }

 private:
  static constexpr size_t kLayers = 3;

  struct Norm {
    std::vector<float> weight, bias;
  };
  struct Work {
    std::vector<float> convolved;
    std::array<std::vector<float>, kLayers> pooled;
  };

  size_t prepare(size_t windows, const Team& team, const CancelToken& cancel);
  void filter(size_t first, size_t count, const CancelToken& cancel);
  const float* encode_one(size_t window, const CancelToken& cancel);
  void normalize_wave(size_t window, Work& work) const;

  std::vector<float> wave_weight_, wave_bias_;
  std::vector<Panels> convolutions_;
  std::vector<float> filter_sums_; // of the taps of each band-pass filter
  std::vector<Norm> norms_;

  std::span<const float> samples_;
  size_t step_ = 0;
  size_t next_ = 0;        // window
  size_t origin_ = 0;      // the sample at which frame 0 of filtered_ begins
  size_t filtered_to_ = 0; // frame that was not filtered yet
  size_t places_ = 0;      // frames in filtered_; frame i is at i % places_
  std::vector<float> filtered_;
  std::vector<Work> work_; // of each window that is encoded at the same time
};

} // namespace voxgate
