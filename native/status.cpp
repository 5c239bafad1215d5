#include "status.h"

#include <new>
#include <system_error>

namespace voxgate {

namespace {

Status status_of_current(StatusCode fallback) {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.status();
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory, "Out of memory"};
  } catch (const std::system_error& error) {
    const bool refused = error.code() == std::errc::resource_unavailable_try_again ||
                         error.code() == std::errc::not_enough_memory;
    return {refused ? StatusCode::out_of_memory : fallback, error.what()};
  } catch (const std::exception& error) {
    return {fallback, error.what()};
  } catch (...) {
    return {fallback, "Unknown exception"};
  }
}

} // namespace

Status current_status(StatusCode fallback) noexcept {
  try {
    return status_of_current(fallback);
  } catch (...) {                                        // there was no memory for a copy of the message
    return {StatusCode::out_of_memory, "Out of memory"}; // short enough to need no allocation
  }
}

} // namespace voxgate
