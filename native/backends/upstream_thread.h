#pragma once

// What the patched copies of whisper.cpp and parakeet.cpp (family.cmake) use in the place of std::thread.
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <type_traits>

namespace voxgate {

// A thread that does its work on the calling thread, before the constructor returns, where there is no thread
// or no memory for one. The libraries keep their threads in a vector: an exception from the second of them
// would destroy the first one unjoined, and that ends the process. So the destructor joins, and `join` throws
// what the work threw. They divide work into parts that do not wait for one another.
class UpstreamThread {
 public:
  UpstreamThread() = default;
  template <typename Function, typename... Arguments>
  requires(!std::is_same_v<std::decay_t<Function>, UpstreamThread>) explicit UpstreamThread(
      Function&& function, Arguments&&... arguments) {
    try {
      auto failure = std::make_shared<std::exception_ptr>();
      auto work = [failure, function,
                   ... given = arguments]() mutable { // copies, so that the last line has them
        try {
          std::invoke(function, given...);
        } catch (...) {
          *failure = std::current_exception();
        }
      };
      thread_ = std::thread(std::move(work));
      failure_ = std::move(failure);
      return;
    } catch (const std::exception&) { // std::system_error or std::bad_alloc
    }
    std::invoke(function, arguments...);
  }
  UpstreamThread(UpstreamThread&&) = default;
  UpstreamThread& operator=(UpstreamThread&&) = default;
  ~UpstreamThread() {
    if (thread_.joinable())
      thread_.join();
  }

  void join() {
    if (!thread_.joinable())
      return;
    thread_.join();
    if (*failure_)
      std::rethrow_exception(*failure_);
  }

  static unsigned hardware_concurrency() { return std::thread::hardware_concurrency(); }

 private:
  std::thread thread_;
  std::shared_ptr<std::exception_ptr> failure_;
};

} // namespace voxgate
