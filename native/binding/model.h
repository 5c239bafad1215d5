#pragma once

#include "backend.h"
#include "binding/errors.h"
#include "binding/job.h"

namespace voxgate {

// Loads a model, or makes a lane of one, on the thread that will use it.
using MakeBackend = std::function<std::unique_ptr<Backend>(const CancelToken&)>;

// The JavaScript object of a loaded model. Node checks the receiver of its methods, and no other code unwraps
// the object.
class Model : public Wrapped<Model> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit Model(const Napi::CallbackInfo& info);
  ~Model() override;

 private:
  static Napi::Value load(const Napi::CallbackInfo& info);
  Napi::Value info(const Napi::CallbackInfo& info);
  Napi::Value lane(const Napi::CallbackInfo& info);
  Napi::Value transcribe(const Napi::CallbackInfo& info);
  Napi::Value detect_language(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);
  void forget_memory();

  std::shared_ptr<Resident<Backend>> resident_;
  MakeBackend make_;
  ModelInfo info_;
  LaneFactory lane_factory_;
  int threads_ = 1;
  int64_t external_bytes_ = 0;
};

} // namespace voxgate
