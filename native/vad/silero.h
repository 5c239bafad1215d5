#pragma once

#include "cancel.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace voxgate {

// Speech probabilities of Silero VAD, one for 512 samples (32 ms). What to make of them is decided elsewhere.
// Same rules as backend.h: one thread from load to destruction, abort by throwing what CancelToken::check
// throws. A cancelled call leaves the recurrent state in the middle of a stream; the next one has to reset.
class SileroVad {
 public:
  explicit SileroVad(const std::string& path);
  ~SileroVad();

  // Without `reset` the stream of the previous call goes on. The last window is padded with zeros.
  std::vector<float> probabilities(std::span<const float> samples, bool reset, const CancelToken& cancel);

 private:
  struct Network;
  std::unique_ptr<Network> network_;
};

} // namespace voxgate
