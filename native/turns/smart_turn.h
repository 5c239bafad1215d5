#pragma once

#include "cancel.h"

#include <memory>
#include <span>
#include <string>

namespace voxgate {

// Smart Turn v3 (https://github.com/pipecat-ai/smart-turn): whether someone who has stopped to speak is done,
// by the sound of the last eight seconds. It is the encoder of Whisper tiny for windows of eight seconds,
// with a pooling by attention and a classifier. The rules of backend.h apply: one thread from load to
// destruction, and an abort by the exception of CancelToken::check. Nothing stays from one call to the next.
class SmartTurn {
 public:
  static constexpr size_t kSamples = 128000; // of a window, at 16 kHz

  // Throws Failure{load_failed} unless it is the file that `voxgate models pull turn-detection` makes. A call
  // computes with `threads` threads, which change nothing of the result.
  explicit SmartTurn(const std::string& path, int threads = 1);
  ~SmartTurn();

  // The probability that the turn is complete. Of more samples than a window has, the last ones count; where
  // there are fewer, silence comes before them, as in training.
  float probability(std::span<const float> samples, const CancelToken& cancel) const;

 private:
  struct Network;
  std::unique_ptr<const Network> network_;
};

} // namespace voxgate
