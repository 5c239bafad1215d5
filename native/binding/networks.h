#pragma once

#include <napi.h>

namespace voxgate {

// The JavaScript objects of our own networks (binding/network_object.h), each in a file of its name.
void define_voice_activity(Napi::Env env, Napi::Object exports);
void define_speaker_model(Napi::Env env, Napi::Object exports);
void define_turn_detector(Napi::Env env, Napi::Object exports);

} // namespace voxgate
