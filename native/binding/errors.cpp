#include "binding/errors.h"

#include <array>

namespace voxgate {
namespace {

// In the order of StatusCode.
constexpr std::array kCodeNames{"load_failed",      "bad_audio",     "inference_failed", "incomplete",
                                "repetition",       "text_too_long", "out_of_memory",    "closed",
                                "invalid_argument", "cancelled"};

// In the order of napi_valuetype; an external value is an object.
constexpr std::array kTypeNames{"undefined", "null",   "boolean",  "number", "string",
                                "symbol",    "object", "function", "object", "bigint"};

const char* type_name(Napi::Value value) {
  return kTypeNames.at(static_cast<size_t>(value.Type()));
}

// The received value, short enough for a log line. The toString of an object is never called.
std::string describe(Napi::Value value) {
  constexpr size_t kMaxShownBytes = 60;
  const auto type = value.Type();
  if (type != napi_string && type != napi_number && type != napi_boolean)
    return type_name(value);
  std::string text = value.ToString().Utf8Value();
  if (text.size() > kMaxShownBytes)
    text = text.substr(0, kMaxShownBytes) + "...";
  if (type == napi_string)
    text = "\"" + text + "\"";
  return text + " (" + type_name(value) + ")";
}

} // namespace

Napi::Error make_error(Napi::Env env, const Status& status) {
  auto error = Napi::Error::New(env, status.message);
  error.Set("code", Napi::String::New(env, kCodeNames.at(static_cast<size_t>(status.code))));
  return error;
}

Napi::Error argument_error(Napi::Env env, const std::string& expected, const std::string& name,
                           Napi::Value received) {
  return make_error(env, {StatusCode::invalid_argument,
                          "Expected " + expected + " for " + name + " but received " + describe(received)});
}

} // namespace voxgate
