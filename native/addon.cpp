#include "backends/ggml_runtime.h"
#include "binding/audio_file.h"
#include "binding/environment.h"
#include "binding/log.h"
#include "binding/model.h"
#include "binding/networks.h"
#include "binding/tasks.h"
#include "freed_memory.h"

// Runs once in every environment that loads the addon. Only src/engine/addon.ts should load it.
static Napi::Object init(Napi::Env env, Napi::Object exports) {
  voxgate::limit_kept_memory();
  voxgate::start_ggml(voxgate::write_log);
  voxgate::Environment::create(env);
  voxgate::define_tasks(env, exports);
  voxgate::Model::define(env, exports);
  voxgate::define_voice_activity(env, exports);
  voxgate::define_speaker_model(env, exports);
  voxgate::define_turn_detector(env, exports);
  voxgate::AudioFileObject::define(env, exports);
  return exports;
}

NODE_API_MODULE(voxgate, init)
