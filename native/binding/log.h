#pragma once

#include "backends/ggml_runtime.h"

#include <string>

namespace voxgate {

class Environment;

const char* log_level_name(LogLevel level);

// The log function for start_ggml. The libraries have one log for the whole process. Each complete line goes
// to every environment with a logger.
void write_log(LogLevel level, const char* text);

void subscribe_to_log(Environment& environment, bool wanted);

} // namespace voxgate
