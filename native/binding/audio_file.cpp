#include "binding/audio_file.h"

#include "binding/convert.h"
#include "binding/errors.h"

#include <algorithm>

namespace voxgate {
namespace {

constexpr int kMaxBlockSamples = 16 * 1024 * 1024; // the most samples of one read

// The argument that the open job passes to the constructor; JavaScript cannot make one.
using Opened = std::shared_ptr<AudioFile>;

AudioFormat read_format(Napi::Object options) {
  const auto name = read_string(options, "format");
  const auto found = std::ranges::find(kAudioFormatNames, name);
  if (found == kAudioFormatNames.end())
    throw argument_error(options.Env(), "wav, mp3, flac or vorbis", "format", options.Get("format"));
  return static_cast<AudioFormat>(found - kAudioFormatNames.begin());
}

} // namespace

void AudioFileObject::define(Napi::Env env, Napi::Object exports) {
  const auto constructor =
      DefineClass(env, "AudioFile",
                  {getter<&AudioFileObject::info>("info"), getter<&AudioFileObject::lost>("lost"),
                   getter<&AudioFileObject::sides>("sides"), method<&AudioFileObject::read>("read"),
                   method<&AudioFileObject::close>("close")});
  Environment::of(env).audio_file_class = Napi::Persistent(constructor);
  exports.Set("openAudio", Napi::Function::New(env, entry<open>, "openAudio"));
}

Napi::Value AudioFileObject::open(const Napi::CallbackInfo& info) {
  const auto options = read_object(info, 0, "options");
  const auto path = read_string(options, "path");
  const auto format = read_format(options);
  const int channel = read_integer(options, "channel", AudioFile::kAllChannels, AudioFile::kMaxChannels - 1);
  const auto env = info.Env();
  return start_job(env, Environment::of(env).decoders(), {}, StatusCode::bad_audio,
                   [path, format, channel](const Job& job) -> Result {
                     auto file = std::make_shared<AudioFile>(path, format, *job.cancel, channel);
                     return [file, job](Napi::Env e) -> Napi::Value {
                       Opened opened = file;
                       return job.environment->audio_file_class.New(
                           {Napi::External<Opened>::New(e, &opened)});
                     };
                   });
}

AudioFileObject::AudioFileObject(const Napi::CallbackInfo& info) : Wrapped<AudioFileObject>(info) {
  if (!info[0].IsExternal())
    throw argument_error(info.Env(), "openAudio to be called", "new AudioFile", info[0]);
  file_ = *info[0].As<Napi::External<Opened>>().Data();
  info_ = file_->info();
}

Napi::Value AudioFileObject::info(const Napi::CallbackInfo& info) {
  const auto env = info.Env();
  auto object = Napi::Object::New(env);
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
  const auto options = read_object(info, 0, "options");
  const auto count = static_cast<size_t>(read_integer(options, "maxSamples", 1, kMaxBlockSamples));
  if (*reading_ && file_)
    throw make_error(env, {StatusCode::invalid_argument, "Expected one read at a time but received another"});
  KeptAlive kept;
  kept.owner = Napi::Persistent(Value());
  *reading_ = true;
  kept.holding = std::shared_ptr<void>(nullptr, [reading = reading_](void*) { *reading = false; });
  if (file_)
    pending_ = kept.cancel;
  else
    kept.cancel->close();
  return start_job(env, Environment::of(env).decoders(), std::move(kept), StatusCode::bad_audio,
                   [file = file_, lost = lost_, sides = sides_, count](const Job& job) -> Result {
                     if (!file->decode(count, *job.cancel))
                       return {};
                     auto samples = file->take(count);
                     auto beside = file->take_sides(count);
                     return [samples = std::move(samples), lost, losses = file->losses(), sides,
                             beside = std::move(beside)](Napi::Env e) -> Napi::Value {
                       *lost = losses;
                       *sides = beside;
                       return samples.empty() ? e.Null() : Napi::Value(to_js(e, samples));
                     };
                   });
}

Napi::Value AudioFileObject::lost(const Napi::CallbackInfo& info) {
  const auto env = info.Env();
  auto list = Napi::Array::New(env, lost_->size());
  for (uint32_t i = 0; i < lost_->size(); ++i) {
    auto loss = Napi::Object::New(env);
    loss.Set("startSec", (*lost_)[i].start_sec);
    loss.Set("endSec", (*lost_)[i].end_sec);
    list.Set(i, loss);
  }
  return list;
}

Napi::Value AudioFileObject::sides(const Napi::CallbackInfo& info) {
  const auto env = info.Env();
  return sides_->empty() ? env.Null() : Napi::Value(to_js(env, *sides_));
}

Napi::Value AudioFileObject::close(const Napi::CallbackInfo& info) {
  if (pending_)
    pending_->close();
  file_.reset(); // a read under way keeps the file until it has seen the close
  return info.Env().Undefined();
}

} // namespace voxgate
