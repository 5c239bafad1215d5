#pragma once

#include <exception>
#include <string>
#include <utility>

namespace voxgate {

// The names JavaScript sees as `error.code`; binding/errors.cpp holds the spelling.
enum class StatusCode {
  load_failed,
  bad_audio,
  inference_failed,
  out_of_memory,
  closed,
  invalid_argument,
  cancelled,
};

struct Status {
  StatusCode code;
  std::string message;
};

// The one exception thrown on purpose below the binding. It never crosses a thread boundary as an exception:
// `start_job` (binding/job.cpp) turns it, and any other exception, into a Status at the top of each job.
class Failure : public std::exception {
 public:
  Failure(StatusCode code, std::string message) : status_{code, std::move(message)} {}
  explicit Failure(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.message.c_str(); }
  const Status& status() const noexcept { return status_; }

 private:
  Status status_;
};

// The Status of the exception being handled; call it only inside a catch block. What nobody foresaw gets
// `fallback`.
Status current_status(StatusCode fallback) noexcept;

} // namespace voxgate
