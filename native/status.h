#pragma once

#include <exception>
#include <string>
#include <utility>

namespace voxgate {

// The codes that JavaScript sees as `error.code`; binding/errors.cpp spells them.
enum class StatusCode {
  load_failed,
  bad_audio,
  inference_failed,
  incomplete,    // the model stopped before the end of the audio; another attempt may reach it
  repetition,    // the model only repeated itself; another attempt may hear more
  text_too_long, // the text to align has more tokens than the model takes at once
  out_of_memory,
  closed,
  invalid_argument,
  cancelled,
};

struct Status {
  StatusCode code;
  std::string message;
};

// The only exception that code below the binding throws on purpose. Exceptions never cross a thread boundary:
// `start_job` (binding/job.cpp) turns every exception of a job into a Status.
class Failure : public std::exception {
 public:
  Failure(StatusCode code, std::string message) : status_{code, std::move(message)} {}
  explicit Failure(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.message.c_str(); }
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

// The Status of the exception that is being handled; call it only inside a catch block. An unexpected
// exception gets the code `fallback`.
Status current_status(StatusCode fallback) noexcept;

} // namespace voxgate
