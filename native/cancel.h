#pragma once

#include "status.h"

#include <atomic>

namespace voxgate {

// Set once, by any thread, and never taken back. Whoever works polls it; after the work it decides the outcome,
// because whisper.cpp reports success for some aborted runs.
class CancelToken {
public:
  void cancel() noexcept { cancelled_.store(true, std::memory_order_release); }
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }
  void check() const {
    if (cancelled())
      throw Failure(StatusCode::cancelled, "Cancelled");
  }

private:
  std::atomic<bool> cancelled_{false};
};

} // namespace voxgate
