#pragma once

#include "binding/errors.h"
#include "binding/job.h"
#include "vad/silero.h"

namespace voxgate {

// The JavaScript object of a loaded voice activity model.
class VoiceActivity : public Wrapped<VoiceActivity> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit VoiceActivity(const Napi::CallbackInfo& info);

 private:
  static Napi::Value load(const Napi::CallbackInfo& info);
  Napi::Value probabilities(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<Resident<SileroVad>> resident_;
};

} // namespace voxgate
