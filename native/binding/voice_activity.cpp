#include "backend.h"
#include "binding/network_object.h"
#include "binding/networks.h"
#include "vad/silero.h"

namespace voxgate {
namespace {

constexpr size_t kMaxSamples =
    size_t{3600} * kSampleRate; // an hour (230 MB); more is a mistake of the caller

class VoiceActivity : public NetworkObject<VoiceActivity, SileroVad> {
 public:
  static constexpr const char* kClass = "VoiceActivity";
  static constexpr const char* kLoader = "loadVoiceActivity";
  static constexpr auto kConstructor = &Environment::voice_activity_class;

  using NetworkObject::NetworkObject;

  static std::vector<Napi::ClassPropertyDescriptor<VoiceActivity>> methods() {
    return {method<&VoiceActivity::probabilities>("probabilities")};
  }

  static auto make(Napi::Object options) {
    return [path = read_string(options, "path")] { return std::make_unique<SileroVad>(path); };
  }

 private:
  Napi::Value probabilities(const Napi::CallbackInfo& info) {
    auto samples = read_samples(info, 0, kMaxSamples);
    const auto options = read_object(info, 1, "options");
    const bool reset = read_boolean(options, "reset");
    const bool apart = read_boolean(options, "apart");
    return start(
        info, [samples = std::move(samples), reset, apart](SileroVad& vad, const CancelToken& cancel) {
          return apart ? vad.probabilities_apart(samples, cancel) : vad.probabilities(samples, reset, cancel);
        });
  }
};

} // namespace

void define_voice_activity(Napi::Env env, Napi::Object exports) {
  VoiceActivity::define(env, exports);
}

} // namespace voxgate
