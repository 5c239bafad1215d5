#pragma once

#include "backends/ggml_runtime.h"

#include <string>

namespace voxgate {

// Gets log lines, on any thread. It must not be destroyed while it is subscribed.
class LogListener {
 public:
  LogListener() = default;
  LogListener(const LogListener&) = delete;
  LogListener& operator=(const LogListener&) = delete;
  virtual ~LogListener() = default;

  virtual void post_log(LogLevel level, const std::string& line) = 0;
};

// The log function for start_ggml. The libraries have one log for the whole process. Each complete line goes
// to every listener.
void write_log(LogLevel level, const char* text);

void subscribe_to_log(LogListener& listener, bool wanted);

} // namespace voxgate
