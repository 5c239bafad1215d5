#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace voxgate {

// Mono samples of any rate to 16 kHz, block by block; the blocks join without a seam. The whole output has
// exactly as many samples as the input's length in time asks for.
class Resampler {
 public:
  explicit Resampler(int rate);
  ~Resampler();

  void process(std::span<const float> input, std::vector<float>& output);
  // The input is over: what is still inside the filter comes out. Nothing may follow.
  void finish(std::vector<float>& output);

 private:
  struct State;
  void run(std::span<const float> input, std::vector<float>& output);

  int rate_;
  uint64_t consumed_ = 0;
  uint64_t produced_ = 0;
  std::unique_ptr<State> state_; // none when there is nothing to convert
};

} // namespace voxgate
