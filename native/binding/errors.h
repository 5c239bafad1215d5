#pragma once

#include "status.h"

#include <napi.h>

namespace voxgate {

// The only makers of JavaScript errors. Each has a `code` from engine/types.ts (and `cancelled`, which the
// TypeScript side turns into the reason of the signal).
Napi::Error make_error(Napi::Env env, const Status& status);

// "Expected a string for options.path but received 5 (number)".
Napi::Error argument_error(Napi::Env env, const std::string& expected, const std::string& name,
                           Napi::Value received);

} // namespace voxgate
