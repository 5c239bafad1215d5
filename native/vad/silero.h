#pragma once

#include "cancel.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace voxgate {

// Computes the speech probabilities of Silero VAD, one for each 512 samples (32 ms). The rules of backend.h
// apply: one thread from load to destruction, and an abort by the exception of CancelToken::check. A
// cancelled call leaves the recurrent state in the middle of a stream, so the next call has to reset it.
class SileroVad {
 public:
  explicit SileroVad(const std::string& path);
  ~SileroVad();

  // Without `reset` the samples continue the stream of the previous call. The last window is padded with
  // zeros. What is heard apart is a stream of its own, after which the one before it goes on.
  std::vector<float> probabilities(std::span<const float> samples, bool reset, const CancelToken& cancel);
  std::vector<float> probabilities_apart(std::span<const float> samples, const CancelToken& cancel);

 private:
  struct Network;
  std::unique_ptr<Network> network_;
};

} // namespace voxgate
