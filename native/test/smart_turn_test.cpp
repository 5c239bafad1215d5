#include "harness.h"

#include "layers/panels.h"
#include "synthetic_speakers.h"
#include "turns/smart_turn.h"
#include "turns/turn_mel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr size_t kFrames = SmartTurn::kSamples / LogMel::kHop;

using Tensors = std::map<std::string, SyntheticTensor>;

void add(Tensors& tensors, const std::string& name, const std::vector<int64_t>& shape) {
  static std::mt19937 generator(27);
  int64_t depth = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    depth *= shape[i];
  std::uniform_real_distribution<float> uniform(-1, 1);
  auto& tensor = tensors[name];
  tensor.shape = shape;
  tensor.values.resize(static_cast<size_t>(shape[0] * depth));
  for (float& value : tensor.values)
    value = uniform(generator) * std::sqrt(3.0F / static_cast<float>(depth));
}

void add_layer(Tensors& tensors, const std::string& name, const std::vector<int64_t>& shape,
               bool has_bias = true) {
  add(tensors, name + ".weight", shape);
  if (has_bias)
    add(tensors, name + ".bias", {shape[0]});
}

// The tensors of the network, with random weights that keep numbers in range.
const Tensors& synthetic_turns() {
  static const Tensors made = [] {
    Tensors tensors;
    add(tensors, "mel_filters", {80, 201});
    for (float& weight : tensors["mel_filters"].values)
      weight = std::fabs(weight);
    add_layer(tensors, "conv1", {384, 80, 3});
    add_layer(tensors, "conv2", {384, 384, 3});
    add(tensors, "positions", {400, 384});
    for (const std::string block : {"block.0", "block.1", "block.2", "block.3"}) {
      for (const std::string part : {".query", ".value", ".out"})
        add_layer(tensors, block + part, {384, 384});
      add_layer(tensors, block + ".key", {384, 384}, false);
      add_layer(tensors, block + ".attention_norm", {384});
      add_layer(tensors, block + ".mlp_norm", {384});
      add_layer(tensors, block + ".up", {1536, 384});
      add_layer(tensors, block + ".down", {384, 1536});
    }
    add_layer(tensors, "norm", {384});
    add_layer(tensors, "pool.0", {256, 384});
    add_layer(tensors, "pool.1", {1, 256});
    add_layer(tensors, "classifier.0", {256, 384});
    add_layer(tensors, "classifier.norm", {256});
    add_layer(tensors, "classifier.1", {64, 256});
    add_layer(tensors, "classifier.2", {1, 64});
    return tensors;
  }();
  return made;
}

std::string written(const Tensors& tensors, const std::string& architecture = "voxgate-turn-detection") {
  auto path = temporary("turns.gguf");
  write_file(path, speakers_file(tensors, architecture));
  return path;
}

template <typename Change> std::string refusal(const Change& change) {
  auto tensors = synthetic_turns();
  change(tensors);
  return reason_of([path = written(tensors)] { SmartTurn{path}; });
}

bool names(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

std::vector<float> sweep(size_t count) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i) {
    const double seconds = static_cast<double>(i) / 16000;
    samples[i] = static_cast<float>(0.4 * std::sin(2 * std::numbers::pi * (200 + 300 * seconds) * seconds));
  }
  return samples;
}

} // namespace

TEST("turns: a file is refused for a tensor that is missing, has another shape or no numbers") {
  CHECK(refusal([](auto&) {}).empty());
  const std::string name = "block.2.query.weight";
  CHECK(names(refusal([&](auto& tensors) { tensors.erase(name); }), "no tensor " + name));
  CHECK(names(
      refusal([](auto& tensors) { std::swap(tensors["positions"].shape[0], tensors["positions"].shape[1]); }),
      "unexpected shape"));
  CHECK(names(refusal([&](auto& tensors) { tensors["block.4.query.weight"] = tensors[name]; }),
              "does not belong"));
  CHECK(names(refusal([](auto& tensors) {
                tensors["classifier.2.bias"].values[0] = std::numeric_limits<float>::quiet_NaN();
              }),
              "not a number"));
  CHECK(failure_of([path = written(synthetic_turns(), "voxgate-diarization")] { SmartTurn{path}; }) ==
        StatusCode::load_failed);
}

TEST("turns: silence before the samples, older samples, and threads change nothing; a signal stops it") {
  const auto path = written(synthetic_turns());
  const SmartTurn alone(path), together(path, 3);
  const CancelToken never;
  const auto spoken = sweep(SmartTurn::kSamples + 16000);
  const auto last = std::span(spoken).last(48000);
  std::vector<float> padded(SmartTurn::kSamples);
  std::ranges::copy(last, padded.end() - 48000);
  const float probability = alone.probability(last, never);
  CHECK(probability > 0 && probability < 1);
  CHECK(together.probability(padded, never) == probability);
  CHECK(together.probability(spoken, never) ==
        together.probability(std::span(spoken).last(SmartTurn::kSamples), never));
  CancelToken cancelled;
  cancelled.cancel();
  CHECK(failure_of([&] { alone.probability(last, cancelled); }) == StatusCode::cancelled);
}

TEST("turns: the spectrum of a tone is in the band of its bin, whatever the loudness") {
  // One band for each bin.
  std::vector<float> filters(LogMel::kBins * LogMel::kBins);
  for (size_t bin = 0; bin < LogMel::kBins; ++bin)
    filters[bin * LogMel::kBins + bin] = 1;
  const LogMel mel(filters, LogMel::kBins);
  std::vector<float> tone(SmartTurn::kSamples), rows(kFrames * LogMel::kBins), others(rows.size());
  for (size_t i = 0; i < tone.size(); ++i)
    tone[i] =
        static_cast<float>(0.5 * std::sin(2 * std::numbers::pi * 1000 * static_cast<double>(i) / 16000));
  turn_log_mel(mel, tone, LogMel::kBins, rows.data(), Team(1));
  for (float& sample : tone)
    sample = 0.1F * sample + 0.2F;
  turn_log_mel(mel, tone, LogMel::kBins, others.data(), Team(2));
  // The first two frames and the last one hear the mirrored ends.
  for (size_t frame = 2; frame + 1 < kFrames; ++frame) {
    const auto row = std::span(rows).subspan(frame * LogMel::kBins, LogMel::kBins);
    CHECK(std::ranges::max_element(row) - row.begin() == 25); // 1000 Hz in bins of 40 Hz
    // A variance of 1 is an amplitude of sqrt(2). The window weighs it with 100: log10(2 * 100^2).
    CHECK(std::fabs(row[25] - (std::log10(20000.0F) + 4) / 4) < 1e-3F);
  }
  for (size_t i = 0; i < rows.size(); ++i)
    CHECK(std::fabs(rows[i] - others[i]) < 2e-2F);
  // Digital silence has the least power everywhere.
  std::vector<float> silence(SmartTurn::kSamples);
  turn_log_mel(mel, silence, LogMel::kBins, rows.data(), Team(1));
  for (const float value : rows)
    CHECK(value == -1.5F);
}
