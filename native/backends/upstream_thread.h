#pragma once

// What the patched copies of whisper.cpp and parakeet.cpp (family.cmake) use in the place of std::thread.
#include <functional>
#include <system_error>
#include <thread>
#include <type_traits>

namespace voxgate {

// A thread that does its work on the calling thread, before the constructor returns, where the system refuses
// to start one. The libraries keep their threads in a vector: an exception from the second of them would
// destroy the first one unjoined, and that ends the process. They divide work into parts that do not wait for
// one another.
class UpstreamThread {
 public:
  UpstreamThread() = default;
  template <typename Function, typename... Arguments>
  requires(!std::is_same_v<std::decay_t<Function>, UpstreamThread>) explicit UpstreamThread(
      Function&& function, Arguments&&... arguments) {
    try {
      thread_ = std::thread(function, arguments...); // copies, so that the next line has them still
    } catch (const std::system_error&) {
      std::invoke(function, arguments...);
    }
  }

  void join() {
    if (thread_.joinable())
      thread_.join();
  }

  static unsigned hardware_concurrency() { return std::thread::hardware_concurrency(); }

 private:
  std::thread thread_;
};

} // namespace voxgate
