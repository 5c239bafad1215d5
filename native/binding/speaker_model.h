#pragma once

#include "binding/errors.h"
#include "binding/job.h"
#include "speakers/speakers.h"

namespace voxgate {

// The JavaScript object of a loaded model that tells speakers apart.
class SpeakerModel : public Wrapped<SpeakerModel> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit SpeakerModel(const Napi::CallbackInfo& info);

 private:
  static Napi::Value load(const Napi::CallbackInfo& info);
  Napi::Value segmentation(const Napi::CallbackInfo& info);
  Napi::Value embeddings(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<Resident<Speakers>> resident_;
};

} // namespace voxgate
