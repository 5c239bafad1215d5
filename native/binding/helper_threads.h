#pragma once

#include <atomic>

namespace voxgate {

// The libraries that compute end the process when the system refuses them a helper thread: libgomp calls
// exit(), ggml's own threads abort(). So the threads are asked for before, where a refusal is an error of one
// call.
class HelperThreads {
 public:
  // Of a model and its lanes together, those that call included.
  explicit HelperThreads(int threads) : threads_(threads) {}

  // On the thread that will compute, before it does. The helpers stay with that thread as long as every graph
  // is computed by as many of them. Throws Failure{out_of_memory}.
  void make() const;

  // There are several lanes now: the helpers of one end and start again as others come and go.
  void share() { shared_ = true; }

  // On the thread that computes, before each call. Throws Failure{out_of_memory} when helpers may have to be
  // started and cannot be at this moment.
  void check() const;

 private:
  int threads_;
  std::atomic<bool> shared_{false};
};

} // namespace voxgate
