#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace voxgate {

// Converts mono samples of any rate to 16 kHz, block by block. The blocks join without a seam, and the whole
// output lasts exactly as long as the input, rounded to a sample.
class Resampler {
 public:
  explicit Resampler(int rate);
  ~Resampler();

  void process(std::span<const float> input, std::vector<float>& output);
  // Ends the input and appends the samples that are still in the filter. No call may follow.
  void finish(std::vector<float>& output);

 private:
  struct State;
  void run(std::span<const float> input, std::vector<float>& output);

  int rate_;
  uint64_t consumed_ = 0;
  uint64_t produced_ = 0;
  std::unique_ptr<State> state_; // null if the input already has 16 kHz
};

} // namespace voxgate
