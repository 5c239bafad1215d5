#pragma once

#include "audio/audio_file.h"
#include "binding/errors.h"
#include "binding/job.h"

namespace voxgate {

// The JavaScript object of an open audio file. Reads do not queue: a second read while the first runs is a
// mistake of the caller, because the order of the samples would be unknown.
class AudioFileObject : public Wrapped<AudioFileObject> {
 public:
  static void define(Napi::Env env, Napi::Object exports);
  explicit AudioFileObject(const Napi::CallbackInfo& info);

 private:
  static Napi::Value open(const Napi::CallbackInfo& info);
  Napi::Value info(const Napi::CallbackInfo& info);
  Napi::Value read(const Napi::CallbackInfo& info);
  Napi::Value lost(const Napi::CallbackInfo& info);
  Napi::Value sides(const Napi::CallbackInfo& info);
  Napi::Value close(const Napi::CallbackInfo& info);

  std::shared_ptr<AudioFile> file_; // null after close
  AudioFile::Info info_{};
  // What was lost in the audio that was read, as of the last read that has ended.
  std::shared_ptr<std::vector<AudioFile::Loss>> lost_ = std::make_shared<std::vector<AudioFile::Loss>>();
  // The sides of what that read gave; empty where the file has none.
  std::shared_ptr<std::vector<float>> sides_ = std::make_shared<std::vector<float>>();
  std::shared_ptr<CancelToken> pending_; // the token of the latest read
  // True while the promise of a read is pending.
  std::shared_ptr<bool> reading_ = std::make_shared<bool>(false);
};

} // namespace voxgate
