#pragma once

#include <napi.h>

namespace voxgate {

// Defines the exports that belong to no object: useCpu, useGpus, engineInfo, setLogger, cancel and quantize.
void define_tasks(Napi::Env env, Napi::Object exports);

} // namespace voxgate
