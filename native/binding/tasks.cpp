#include "binding/tasks.h"

#include "backends/cpu_library.h"
#include "binding/convert.h"
#include "binding/errors.h"
#include "binding/job.h"
#include "models/quantize.h"

namespace voxgate {
namespace {

void load_cpu(const Napi::CallbackInfo& info) {
  if (!info[0].IsString())
    throw argument_error(info.Env(), "a string", "level", info[0]);
  use_cpu(info[0].As<Napi::String>().Utf8Value());
}

void load_gpus(const Napi::CallbackInfo& info) {
  if (!info[0].IsArray())
    throw argument_error(info.Env(), "an array of strings", "folders", info[0]);
  const auto given = info[0].As<Napi::Array>();
  std::vector<std::string> folders;
  for (uint32_t i = 0; i < given.Length(); ++i)
    folders.push_back(given.Get(i).ToString().Utf8Value());
  use_gpus(folders);
}

Napi::Value get_engine_info(const Napi::CallbackInfo& info) {
  return to_js(info.Env(), engine_info());
}

void set_logger(const Napi::CallbackInfo& info) {
  const Napi::Value write = info[0];
  if (!write.IsFunction() && !write.IsNull())
    throw argument_error(info.Env(), "a function or null", "write", write);
  Environment::of(info.Env()).set_logger(write.IsNull() ? Napi::Function() : write.As<Napi::Function>());
}

void cancel_job(const Napi::CallbackInfo& info) {
  if (!info[0].IsNumber())
    throw argument_error(info.Env(), "a number", "id", info[0]);
  Environment::of(info.Env()).cancel(static_cast<CallId>(info[0].As<Napi::Number>().Int64Value()));
}

Napi::Value quantize(const Napi::CallbackInfo& info) {
  struct Nothing {};
  const auto options = read_object(info, 0, "options");
  const auto source = read_string(options, "source");
  const auto target = read_string(options, "target");
  if (read_string(options, "type") != "q8_0")
    throw argument_error(info.Env(), "\"q8_0\"", "type", options.Get("type"));
  auto resident = std::make_shared<Resident<Nothing>>(Environment::of(info.Env()).shared_from_this());
  // The call keeps its thread.
  return start_job(info.Env(), resident->worker(), {.holding = resident}, StatusCode::load_failed,
                   [source, target](const Job& job) -> Result {
                     quantize_whisper_q8_0(source, target, *job.cancel);
                     return [](Napi::Env e) { return e.Undefined(); };
                   });
}

} // namespace

void define_tasks(Napi::Env env, Napi::Object exports) {
  exports.Set("useCpu", Napi::Function::New(env, entry<load_cpu>, "useCpu"));
  exports.Set("useGpus", Napi::Function::New(env, entry<load_gpus>, "useGpus"));
  exports.Set("engineInfo", Napi::Function::New(env, entry<get_engine_info>, "engineInfo"));
  exports.Set("setLogger", Napi::Function::New(env, entry<set_logger>, "setLogger"));
  exports.Set("cancel", Napi::Function::New(env, entry<cancel_job>, "cancel"));
  exports.Set("quantize", Napi::Function::New(env, entry<quantize>, "quantize"));
}

} // namespace voxgate
