#pragma once

#include <atomic>

namespace voxgate {

// Checks that the system grants the helper threads of a call. The libraries end the process when it refuses
// one: libgomp calls exit(), and ggml's own threads abort(). So the threads are started once before, where a
// refusal is only an error of one call.
class HelperThreads {
 public:
  // `threads` is the number for a model and its lanes together, with the calling threads.
  explicit HelperThreads(int threads) : threads_(threads) {}

  // Starts the helpers. Call it on the thread that will compute, before its first graph. The helpers stay
  // with that thread while every graph uses the same number of them. Throws Failure{out_of_memory}.
  void make() const;

  // Call this when there are several lanes. The helpers of a lane then end and start again as others come and
  // go.
  void share() { shared_ = true; }

  // Call this on the computing thread before each call. Throws Failure{out_of_memory} if helpers may have to
  // start and cannot start now.
  void check() const;

 private:
  int threads_;
  std::atomic<bool> shared_{false};
};

} // namespace voxgate
