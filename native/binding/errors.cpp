#include "binding/errors.h"

namespace voxgate {
namespace {

const char* code_name(StatusCode code) {
  switch (code) {
  case StatusCode::load_failed:
    return "load_failed";
  case StatusCode::bad_audio:
    return "bad_audio";
  case StatusCode::inference_failed:
    return "inference_failed";
  case StatusCode::incomplete:
    return "incomplete";
  case StatusCode::repetition:
    return "repetition";
  case StatusCode::text_too_long:
    return "text_too_long";
  case StatusCode::out_of_memory:
    return "out_of_memory";
  case StatusCode::closed:
    return "closed";
  case StatusCode::invalid_argument:
    return "invalid_argument";
  case StatusCode::cancelled:
    return "cancelled";
  }
  return "inference_failed";
}

const char* type_name(Napi::Value value) {
  switch (value.Type()) {
  case napi_undefined:
    return "undefined";
  case napi_null:
    return "null";
  case napi_boolean:
    return "boolean";
  case napi_number:
    return "number";
  case napi_string:
    return "string";
  case napi_symbol:
    return "symbol";
  case napi_function:
    return "function";
  case napi_bigint:
    return "bigint";
  default:
    return "object";
  }
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
  error.Set("code", Napi::String::New(env, code_name(status.code)));
  return error;
}

Napi::Error argument_error(Napi::Env env, const std::string& expected, const std::string& name,
                           Napi::Value received) {
  return make_error(env, {StatusCode::invalid_argument,
                          "Expected " + expected + " for " + name + " but received " + describe(received)});
}

} // namespace voxgate
