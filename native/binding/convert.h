#pragma once

#include "backend.h"
#include "backends/ggml_runtime.h"

#include <napi.h>

// Converts between JavaScript values and plain structs. Reading checks everything except what only the model
// knows, and throws an argument error that names the wrong value.

namespace voxgate {

Napi::Object read_object(const Napi::CallbackInfo& info, size_t index, const std::string& name);
std::string read_string(Napi::Object object, const std::string& name);
// Empty where the member is missing.
std::string read_text(Napi::Object object, const std::string& name);
// An array of at most `most` strings, each of at most `bytes` in UTF-8. Empty where the member is missing.
std::vector<std::string> read_texts(Napi::Object object, const std::string& name, size_t most, size_t bytes);
// Parts of a chunk, none where the member is missing.
std::vector<DetectionOptions::Part> read_parts(Napi::Object object, const std::string& name);
bool read_boolean(Napi::Object object, const std::string& name);
// Reads a whole number from `low` to `high`.
int read_integer(Napi::Object object, const std::string& name, int low, int high);

// Copies the samples, so that JavaScript may change, transfer or detach the array afterwards. NaN and
// infinity become 0.
std::vector<float> read_samples(const Napi::CallbackInfo& info, size_t index, size_t max_samples);

int read_threads(Napi::Object options);
LoadOptions read_load_options(Napi::Object options);
ChunkOptions read_chunk_options(Napi::Object options, const ModelInfo& model);

Napi::Object to_js(Napi::Env env, const ModelInfo& info);
Napi::Object to_js(Napi::Env env, const Token& token);
Napi::Object to_js(Napi::Env env, const Segment& segment);
Napi::Object to_js(Napi::Env env, const Languages& ranked);
Napi::Object to_js(Napi::Env env, const ComputeDevice& device);
Napi::Object to_js(Napi::Env env, const EngineInfo& info);
Napi::Float32Array to_js(Napi::Env env, const std::vector<float>& samples);
Napi::Number to_js(Napi::Env env, float number);

template <typename T> Napi::Array to_js_array(Napi::Env env, const std::vector<T>& items) {
  auto array = Napi::Array::New(env, items.size());
  for (uint32_t i = 0; i < items.size(); ++i)
    array.Set(i, to_js(env, items[i]));
  return array;
}

} // namespace voxgate
