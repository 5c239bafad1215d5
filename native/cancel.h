#pragma once

#include "status.h"

#include <atomic>

namespace voxgate {

// A flag that any thread may set, once and for good; the first reason stays. The working thread polls it. The
// token also decides the outcome after the work, because whisper.cpp reports success for some aborted runs.
class CancelToken {
 public:
  void cancel() noexcept { set(Reason::cancelled); }
  // Call this when the object that the work belongs to is closed.
  void close() noexcept { set(Reason::closed); }
  bool cancelled() const noexcept { return reason_.load(std::memory_order_acquire) != Reason::none; }
  void check() const {
    switch (reason_.load(std::memory_order_acquire)) {
    case Reason::none:
      return;
    case Reason::cancelled:
      throw Failure(StatusCode::cancelled, "Cancelled");
    case Reason::closed:
      throw Failure(StatusCode::closed, "Closed while the call was pending");
    }
  }

 private:
  enum class Reason { none, cancelled, closed };
  void set(Reason reason) noexcept {
    Reason expected = Reason::none;
    reason_.compare_exchange_strong(expected, reason, std::memory_order_acq_rel);
  }
  std::atomic<Reason> reason_{Reason::none};
};

} // namespace voxgate
