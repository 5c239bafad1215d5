#pragma once

#include <cstddef>
#include <exception>

namespace voxgate {

// The threads that compute one call of a model: helpers of OpenMP, which stay with the thread that calls.
// Without OpenMP it is that thread alone.
class Team {
 public:
  explicit Team(int threads) : threads_(threads < 1 ? 1 : threads) {}

  int threads() const { return threads_; }

  // Calls work(0) to work(jobs - 1), in any order and several at the same time. Throws what one of them
  // threw, when all have ended.
  template <typename Work> void share(size_t jobs, const Work& work) const {
    if (jobs == 1 || threads_ == 1) {
      for (size_t job = 0; job < jobs; ++job)
        work(job);
      return;
    }
    std::exception_ptr failure; // an exception must not leave the region of OpenMP
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads(threads_)
#endif
    for (size_t job = 0; job < jobs; ++job) {
      try {
        work(job);
      } catch (...) {
#ifdef _OPENMP
#pragma omp critical(voxgate_team)
#endif
        if (!failure)
          failure = std::current_exception();
      }
    }
    if (failure)
      std::rethrow_exception(failure);
  }

 private:
  int threads_;
};

} // namespace voxgate
