#include "status.h"

#include <new>

namespace voxgate {

Status current_status(StatusCode fallback) noexcept {
  try {
    throw;
  } catch (const Failure& failure) {
    return failure.status();
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory, "Not enough memory"};
  } catch (const std::exception& error) {
    return {fallback, error.what()};
  } catch (...) {
    return {fallback, "Unknown exception"};
  }
}

} // namespace voxgate
