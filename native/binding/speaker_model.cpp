#include "backend.h"
#include "binding/network_object.h"
#include "binding/networks.h"
#include "speakers/speakers.h"

#include <algorithm>

namespace voxgate {
namespace {

constexpr size_t kMaxSceneSamples = size_t{120} * kSampleRate; // of one call of segmentation
constexpr size_t kMinStep = 1600;                              // a tenth of a second between two windows
constexpr size_t kMaxStep = 160000;                            // a window
constexpr size_t kMaxVoiceSamples = size_t{30} * kSampleRate;  // of one call of embeddings
constexpr size_t kMinVoiceSamples = 1600;                      // silence is added to fewer
constexpr size_t kMaxMasks = 512;
constexpr size_t kMaxMaskValues = 1048576; // of all masks together

// Tells speakers apart.
class SpeakerModel : public NetworkObject<SpeakerModel, Speakers> {
 public:
  static constexpr const char* kClass = "SpeakerModel";
  static constexpr const char* kLoader = "loadSpeakers";
  static constexpr auto kConstructor = &Environment::speaker_model_class;

  using NetworkObject::NetworkObject;

  static std::vector<Napi::ClassPropertyDescriptor<SpeakerModel>> methods() {
    return {method<&SpeakerModel::segmentation>("segmentation"),
            method<&SpeakerModel::embeddings>("embeddings")};
  }

  static auto make(Napi::Object options) {
    return make_with_threads<Speakers>(read_string(options, "path"),
                                       options.Get("threads").IsUndefined() ? 1 : read_threads(options));
  }

 private:
  Napi::Value segmentation(const Napi::CallbackInfo& info) {
    auto samples = read_samples(info, 0, kMaxSceneSamples);
    const auto step = static_cast<size_t>(read_integer(
        read_object(info, 1, "options"), "step", static_cast<int>(kMinStep), static_cast<int>(kMaxStep)));
    return start(info, [samples = std::move(samples), step](Speakers& speakers, const CancelToken& cancel) {
      return speakers.segmentation(samples, step, cancel);
    });
  }

  Napi::Value embeddings(const Napi::CallbackInfo& info) {
    auto samples = read_samples(info, 0, kMaxVoiceSamples);
    samples.resize(std::max(samples.size(), kMinVoiceSamples));
    const auto count = static_cast<size_t>(
        read_integer(read_object(info, 1, "options"), "masks", 0, static_cast<int>(kMaxMasks)));
    auto values = count == 0 ? std::vector<float>{} : read_samples(info, 2, kMaxMaskValues);
    if (count > 0 && values.size() % count != 0)
      throw argument_error(info.Env(), "masks of equal length", "masks", info[2]);
    return start(info, [samples = std::move(samples), values = std::move(values),
                        count](Speakers& speakers, const CancelToken& cancel) {
      std::vector<std::span<const float>> masks;
      for (size_t i = 0; i < count; ++i)
        masks.push_back(std::span(values).subspan(i * (values.size() / count), values.size() / count));
      return speakers.embeddings(samples, masks, cancel);
    });
  }
};

} // namespace

void define_speaker_model(Napi::Env env, Napi::Object exports) {
  SpeakerModel::define(env, exports);
}

} // namespace voxgate
