#include "backends/whisper/whisper_step_batcher.h"

#include "backends/gpu_guard.h"

#include <utility>

namespace voxgate {

StepBatcher::Member::Member(StepBatcher* batcher) : batcher_(batcher) {
  if (batcher_ == nullptr)
    return;
  const std::lock_guard lock(batcher_->mutex_);
  ++batcher_->members_;
}

StepBatcher::Member::~Member() {
  if (batcher_ == nullptr)
    return;
  {
    const std::lock_guard lock(batcher_->mutex_);
    --batcher_->members_;
  }
  batcher_->changed_.notify_all(); // the others may all be there now
}

size_t StepBatcher::compute(const Lane& lane) {
  using Clock = std::chrono::steady_clock;
  Step step{lane};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&step);
  auto end = Clock::now() + kLongestWait;
  while (!step.is_over) {
    if (step.is_taken || is_computing_) {
      changed_.wait(lock);
      end = Clock::now() + kLongestWait; // the lanes of that graph have just begun to choose their tokens
    } else if (waiting_.size() >= members_ || Clock::now() >= end) {
      compute_all(lock);
    } else {
      changed_.wait_until(lock, end);
    }
  }
  return step.lanes;
}

void StepBatcher::compute_all(std::unique_lock<std::mutex>& lock) {
  const auto steps = std::exchange(waiting_, {});
  for (auto* step : steps)
    step->is_taken = true;
  is_computing_ = true;
  lock.unlock();
  bool is_done = false;
  try {
    std::vector<Lane> lanes;
    lanes.reserve(steps.size());
    for (const auto* step : steps)
      lanes.push_back(step->lane);
    // A lost GPU comes back to here: the other lanes must not wait for a thread that is elsewhere.
    is_done = ask_gpu([&] { is_done = compute_(lanes); }) && is_done;
  } catch (...) { // NOLINT(bugprone-empty-catch): each lane finds out by itself, where it fails alone, too
  }
  lock.lock();
  is_computing_ = false;
  for (auto* step : steps) {
    step->lanes = is_done ? steps.size() : 0;
    step->is_over = true;
  }
  changed_.notify_all();
}

} // namespace voxgate
