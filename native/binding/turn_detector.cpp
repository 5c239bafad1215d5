#include "binding/turn_detector.h"

#include "backend.h"
#include "binding/convert.h"
#include "binding/errors.h"
#include "binding/helper_threads.h"

namespace voxgate {
namespace {

using ResidentTurns = Resident<SmartTurn>;

constexpr size_t kMaxTurnSamples = 128000; // of one call
static_assert(kMaxTurnSamples == SmartTurn::kSamples);

} // namespace

void TurnDetector::define(Napi::Env env, Napi::Object exports) {
  const auto constructor =
      DefineClass(env, "TurnDetector",
                  {method<&TurnDetector::probability>("probability"), method<&TurnDetector::close>("close")});
  Environment::of(env).turn_detector_class = Napi::Persistent(constructor);
  exports.Set("loadTurnDetector", Napi::Function::New(env, entry<load>, "loadTurnDetector"));
}

Napi::Value TurnDetector::load(const Napi::CallbackInfo& info) {
  const auto options = read_object(info, 0, "options");
  const auto path = read_string(options, "path");
  const int threads = read_threads(options);
  auto resident = std::make_shared<ResidentTurns>(Environment::of(info.Env()).shared_from_this());
  Callbacks callbacks;
  callbacks.holding = resident;
  Worker& worker = resident->worker();
  return start_job(
      info.Env(), worker, std::move(callbacks), StatusCode::load_failed,
      [resident = resident.get(), path, threads](const Job& job) -> Result {
        start_helper_threads(threads);
        resident->object() = std::make_unique<SmartTurn>(path, threads);
        return [job](Napi::Env e) -> Napi::Value {
          auto held = std::static_pointer_cast<ResidentTurns>(job.environment->find(job.id)->holding);
          return job.environment->turn_detector_class.New({Napi::External<decltype(held)>::New(e, &held)});
        };
      });
}

TurnDetector::TurnDetector(const Napi::CallbackInfo& info) : Wrapped<TurnDetector>(info) {
  if (!info[0].IsExternal())
    throw argument_error(info.Env(), "loadTurnDetector to be called", "new TurnDetector", info[0]);
  resident_ = *info[0].As<Napi::External<std::shared_ptr<ResidentTurns>>>().Data();
}

Napi::Value TurnDetector::probability(const Napi::CallbackInfo& info) {
  auto samples = read_samples(info, 0, kMaxTurnSamples);
  Callbacks callbacks;
  callbacks.owner = Napi::Persistent(Value());
  return start_job(info.Env(), resident_->worker(), std::move(callbacks), StatusCode::inference_failed,
                   [resident = resident_.get(), samples = std::move(samples)](const Job& job) -> Result {
                     const float result = resident->object()->probability(samples, *job.cancel);
                     return [result](Napi::Env e) -> Napi::Value { return Napi::Number::New(e, result); };
                   });
}

Napi::Value TurnDetector::close(const Napi::CallbackInfo& info) {
  return close_resident(info.Env(), *resident_, Value());
}

} // namespace voxgate
