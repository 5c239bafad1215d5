#pragma once

#include "backends/ggml_runtime.h"

#include <string>

namespace voxgate {

class Environment;

const char* log_level_name(LogLevel level);

// The sink for start_ggml. The libraries' log is one for the process; whole lines go to every environment
// that has a logger, and nowhere when none has.
void write_log(LogLevel level, const char* text);

void subscribe_to_log(Environment& environment, bool wanted);

} // namespace voxgate
