#include "binding/voice_activity.h"

#include "backend.h"
#include "binding/convert.h"
#include "binding/errors.h"

namespace voxgate {
namespace {

using ResidentVad = Resident<SileroVad>;

constexpr size_t kMaxSamples =
    size_t{3600} * kSampleRate; // an hour (230 MB); more is a mistake of the caller

} // namespace

void VoiceActivity::define(Napi::Env env, Napi::Object exports) {
  const auto constructor = DefineClass(
      env, "VoiceActivity",
      {method<&VoiceActivity::probabilities>("probabilities"), method<&VoiceActivity::close>("close")});
  Environment::of(env).voice_activity_class = Napi::Persistent(constructor);
  exports.Set("loadVoiceActivity", Napi::Function::New(env, entry<load>, "loadVoiceActivity"));
}

Napi::Value VoiceActivity::load(const Napi::CallbackInfo& info) {
  const auto path = read_string(read_object(info, 0, "options"), "path");
  auto resident = std::make_shared<ResidentVad>(Environment::of(info.Env()).shared_from_this());
  Callbacks callbacks;
  callbacks.holding = resident;
  Worker& worker = resident->worker();
  return start_job(
      info.Env(), worker, std::move(callbacks), StatusCode::load_failed,
      [resident = resident.get(), path](const Job& job) -> Result {
        resident->object() = std::make_unique<SileroVad>(path);
        return [job](Napi::Env e) -> Napi::Value {
          auto held = std::static_pointer_cast<ResidentVad>(job.environment->find(job.id)->holding);
          return job.environment->voice_activity_class.New({Napi::External<decltype(held)>::New(e, &held)});
        };
      });
}

VoiceActivity::VoiceActivity(const Napi::CallbackInfo& info) : Wrapped<VoiceActivity>(info) {
  if (!info[0].IsExternal())
    throw argument_error(info.Env(), "loadVoiceActivity to be called", "new VoiceActivity", info[0]);
  resident_ = *info[0].As<Napi::External<std::shared_ptr<ResidentVad>>>().Data();
}

Napi::Value VoiceActivity::probabilities(const Napi::CallbackInfo& info) {
  auto samples = read_samples(info, 0, kMaxSamples);
  const bool reset = read_boolean(read_object(info, 1, "options"), "reset");
  Callbacks callbacks;
  callbacks.owner = Napi::Persistent(Value());
  return start_job(
      info.Env(), resident_->worker(), std::move(callbacks), StatusCode::inference_failed,
      [resident = resident_.get(), samples = std::move(samples), reset](const Job& job) -> Result {
        auto probs = resident->object()->probabilities(samples, reset, *job.cancel);
        return [probs = std::move(probs)](Napi::Env e) { return to_js(e, probs); };
      });
}

Napi::Value VoiceActivity::close(const Napi::CallbackInfo& info) {
  return close_resident(info.Env(), *resident_, Value());
}

} // namespace voxgate
