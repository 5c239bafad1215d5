#include "binding/audio_file.h"

#include "binding/convert.h"
#include "binding/errors.h"

namespace voxgate {
namespace {

constexpr int kMaxBlock = 16 * 1024 * 1024; // samples of one read

// What an open job hands to the constructor; JavaScript cannot make one.
struct Opened {
  std::shared_ptr<Resident<AudioFile>> resident;
  AudioFile::Info info;
};

} // namespace

void AudioFileObject::define(Napi::Env env, Napi::Object exports) {
  const auto constructor = DefineClass(env, "AudioFile",
                                       {InstanceAccessor<&AudioFileObject::info>("info"),
                                        InstanceMethod<&AudioFileObject::read>("read"),
                                        InstanceMethod<&AudioFileObject::close>("close")});
  Environment::of(env).audio_file_class = Napi::Persistent(constructor);
  exports.Set("openAudio", Napi::Function::New(env, open, "openAudio"));
}

Napi::Value AudioFileObject::open(const Napi::CallbackInfo& info) {
  const auto path = read_string(read_object(info, 0, "options"), "path");
  auto resident = std::make_shared<Resident<AudioFile>>(Environment::of(info.Env()).shared_from_this());
  Callbacks callbacks;
  callbacks.holding = resident;
  Worker& worker = resident->worker();
  return start_job(info.Env(), worker, std::move(callbacks), StatusCode::bad_audio,
                   [resident = resident.get(), path](const Job& job) -> Result {
                     resident->object() = std::make_unique<AudioFile>(path);
                     return [audio = resident->object()->info(), job](Napi::Env e) -> Napi::Value {
                       auto held = job.environment->find(job.id)->holding;
                       Opened opened{std::static_pointer_cast<Resident<AudioFile>>(held), audio};
                       return job.environment->audio_file_class.New(
                           {Napi::External<Opened>::New(e, &opened)});
                     };
                   });
}

AudioFileObject::AudioFileObject(const Napi::CallbackInfo& info) : Napi::ObjectWrap<AudioFileObject>(info) {
  if (!info[0].IsExternal())
    throw argument_error(info.Env(), "openAudio to be called", "new AudioFile", info[0]);
  const auto* opened = info[0].As<Napi::External<Opened>>().Data();
  resident_ = opened->resident;
  info_ = opened->info;
}

Napi::Value AudioFileObject::info(const Napi::CallbackInfo& info) {
  const auto env = info.Env();
  auto object = Napi::Object::New(env);
  object.Set("format", audio_format_name(info_.format));
  object.Set("sampleRate", info_.sample_rate);
  object.Set("channels", info_.channels);
  if (info_.duration_sec < 0)
    object.Set("durationSec", env.Null());
  else
    object.Set("durationSec", info_.duration_sec);
  return object;
}

Napi::Value AudioFileObject::read(const Napi::CallbackInfo& info) {
  const auto env = info.Env();
  const auto count =
      static_cast<size_t>(read_integer(read_object(info, 0, "options"), "maxSamples", 1, kMaxBlock));
  if (*reading_ && !resident_->closed())
    throw make_error(env, {StatusCode::invalid_argument, "Expected one read at a time but received another"});
  *reading_ = true;
  Callbacks callbacks;
  callbacks.owner = Napi::Persistent(Value());
  callbacks.holding = std::shared_ptr<void>(nullptr, [reading = reading_](void*) { *reading = false; });
  return start_job(env, resident_->worker(), std::move(callbacks), StatusCode::bad_audio,
                   [resident = resident_.get(), count](const Job&) -> Result {
                     auto samples = resident->object()->read(count);
                     return [samples = std::move(samples)](Napi::Env e) -> Napi::Value {
                       return samples.empty() ? e.Null() : Napi::Value(to_js(e, samples));
                     };
                   });
}

Napi::Value AudioFileObject::close(const Napi::CallbackInfo& info) {
  resident_->close([] {});
  return info.Env().Undefined();
}

} // namespace voxgate
