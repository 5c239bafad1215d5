#include "binding/network_object.h"
#include "binding/networks.h"
#include "turns/smart_turn.h"

namespace voxgate {
namespace {

constexpr size_t kMaxTurnSamples = 128000; // of one call
static_assert(kMaxTurnSamples == SmartTurn::kSamples);

// Tells whether a turn is complete.
class TurnDetector : public NetworkObject<TurnDetector, SmartTurn> {
 public:
  static constexpr const char* kClass = "TurnDetector";
  static constexpr const char* kLoader = "loadTurnDetector";
  static constexpr auto kConstructor = &Environment::turn_detector_class;

  using NetworkObject::NetworkObject;

  static std::vector<Napi::ClassPropertyDescriptor<TurnDetector>> methods() {
    return {method<&TurnDetector::probability>("probability")};
  }

  static auto make(Napi::Object options) {
    return make_with_threads<SmartTurn>(read_string(options, "path"), read_threads(options));
  }

 private:
  Napi::Value probability(const Napi::CallbackInfo& info) {
    auto samples = read_samples(info, 0, kMaxTurnSamples);
    return start(info, [samples = std::move(samples)](const SmartTurn& network, const CancelToken& cancel) {
      return network.probability(samples, cancel);
    });
  }
};

} // namespace

void define_turn_detector(Napi::Env env, Napi::Object exports) {
  TurnDetector::define(env, exports);
}

} // namespace voxgate
