#include "backends/whisper/whisper_mel.h"

#include "audio/log_mel.h"

#include <vector>

namespace voxgate {
namespace {

// Half a frame of the beginning mirrored before it, so that the first frame is centered on the first sample.
std::vector<float> centered(std::span<const float> samples) {
  std::vector<float> result(samples.rend() - LogMel::kFrame / 2 - 1, samples.rend() - 1);
  result.insert(result.end(), samples.begin(), samples.end());
  return result;
}

} // namespace

void whisper_log_mel(std::span<const float> samples, std::span<const float> filters, size_t mels,
                     std::span<float> out) {
  const size_t frames = out.size() / mels;
  LogMel(filters, mels)(centered(samples), frames, out.data(), {.band_step = frames, .frame_step = 1},
                        Team(1));
}

} // namespace voxgate
