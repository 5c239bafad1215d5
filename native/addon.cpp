#include "backends/ggml_runtime.h"
#include "binding/audio_file.h"
#include "binding/environment.h"
#include "binding/log.h"
#include "binding/model.h"
#include "binding/speaker_model.h"
#include "binding/tasks.h"
#include "binding/turn_detector.h"
#include "binding/voice_activity.h"
#include "freed_memory.h"

// Runs once in every environment that loads the addon. Only src/engine/addon.ts should load it.
static Napi::Object init(Napi::Env env, Napi::Object exports) {
  voxgate::limit_kept_memory();
  voxgate::start_ggml(voxgate::write_log);
  voxgate::Environment::create(env);
  voxgate::define_tasks(env, exports);
  voxgate::Model::define(env, exports);
  voxgate::VoiceActivity::define(env, exports);
  voxgate::SpeakerModel::define(env, exports);
  voxgate::TurnDetector::define(env, exports);
  voxgate::AudioFileObject::define(env, exports);
  return exports;
}

NODE_API_MODULE(voxgate, init)
