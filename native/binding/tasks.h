#pragma once

#include <napi.h>

namespace voxgate {

// Exports without an object of their own: engineInfo, setLogger, cancel and quantize.
void define_tasks(Napi::Env env, Napi::Object exports);

} // namespace voxgate
