#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

struct whisper_context;
struct whisper_state;

namespace voxgate {

// Batched decoding: of the lanes of a model those that want the next token at the same time are computed in
// one graph, which reads the weights of the decoder once for all of them. A lane that wants one waits for the
// others that decode, and one of them computes for all.
class StepBatcher {
 public:
  struct Lane {
    whisper_context* context;
    whisper_state* state;
  };
  // Computes the next step of each of these lanes. It returns false or throws when the step failed.
  using Compute = std::function<bool(std::span<const Lane>)>;

  explicit StepBatcher(Compute compute) : compute_(std::move(compute)) {}

  // While it lives, the other lanes wait for the steps of one more lane. Nothing where `batcher` is null.
  class Member {
   public:
    explicit Member(StepBatcher* batcher);
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    ~Member();

   private:
    StepBatcher* batcher_;
  };

  // How many lanes had their step in the graph of this one; 0 where the graph failed. Each lane can then do
  // what it does without the others, and fails or goes on by itself.
  size_t compute(const Lane& lane);

 private:
  // A step takes a member that long at most, between two graphs, beside what other programs take from it. A
  // lane that a lost GPU has thrown out of its call (gpu_guard.h) stays a member and comes no more.
  static constexpr std::chrono::milliseconds kLongestWait{3};

  struct Step {
    Lane lane;
    bool is_taken = false;
    bool is_over = false;
    size_t lanes = 0;
  };
  void compute_all(std::unique_lock<std::mutex>& lock);

  Compute compute_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Step*> waiting_;
  size_t members_ = 0;
  bool is_computing_ = false;
};

} // namespace voxgate
