#pragma once

#include "binding/errors.h"
#include "binding/job.h"
#include "turns/smart_turn.h"

namespace voxgate {

// The JavaScript object of a loaded model that tells whether a turn is complete.
class TurnDetector : public Wrapped<TurnDetector> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit TurnDetector(const Napi::CallbackInfo& info);

 private:
  static Napi::Value load(const Napi::CallbackInfo& info);
  Napi::Value probability(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<Resident<SmartTurn>> resident_;
};

} // namespace voxgate
