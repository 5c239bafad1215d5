#include "harness.h"

#include "layers/panel_tiles.h"
#include "layers/panels.h"
#include "simd_dispatch.h"
#include "speakers/speakers.h"
#include "synthetic_speakers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr size_t kWindow = 160000;

const std::string& whole_file() {
  static const std::string path = [] {
    auto name = temporary("speakers.gguf");
    write_file(name, speakers_file(synthetic_speakers()));
    return name;
  }();
  return path;
}

template <typename Change> std::string refusal(const Change& change) {
  auto tensors = synthetic_speakers();
  change(tensors);
  const auto path = temporary("refused.gguf");
  write_file(path, speakers_file(tensors));
  return reason_of([&] { Speakers{path}; });
}

bool names(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

std::vector<float> noise(size_t count, float loudness = 0.3F) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<float> uniform(-loudness, loudness);
  std::vector<float> samples(count);
  for (float& sample : samples)
    sample = uniform(generator);
  return samples;
}

bool finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

float distance(const std::vector<float>& some, const std::vector<float>& others) {
  CHECK(some.size() == others.size());
  float largest = 0;
  for (size_t i = 0; i < some.size(); ++i)
    largest = std::max(largest, std::fabs(some[i] - others[i]));
  return largest;
}

// The vectors that this processor has, from the narrowest on. They are the widest ones again in the end.
template <typename Action> void for_all_vectors(const Action& action) {
  for (const auto vectors :
       {PanelVectors::narrow, PanelVectors::avx2, PanelVectors::avx512, PanelVectors::tiles}) {
    if (vectors > Panels::widest())
      break;
    Panels::use(vectors);
    action();
  }
  Panels::use(Panels::widest());
}

} // namespace

TEST("speakers: a file is refused for a tensor that is missing, has another shape or no numbers") {
  CHECK(refusal([](auto&) {}).empty());
  const std::string name = "embedding.block.1.3.gate.weight";
  CHECK(names(refusal([&](auto& tensors) { tensors.erase(name); }), "no tensor " + name));
  CHECK(names(refusal([&](auto& tensors) { std::swap(tensors[name].shape[0], tensors[name].shape[1]); }),
              "unexpected shape"));
  CHECK(names(refusal([&](auto& tensors) { tensors["other"] = tensors[name]; }), "does not belong"));
  for (const float value : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    CHECK(names(refusal([&](auto& tensors) { tensors["segmentation.classifier.bias"].values[3] = value; }),
                "not a number"));
  const auto path = temporary("other.gguf");
  write_file(path, speakers_file(synthetic_speakers(), "sensevoice"));
  CHECK(failure_of([&] { Speakers{path}; }) == StatusCode::load_failed);
  const auto bytes = read_file(whole_file());
  for (const size_t size : {size_t{0}, size_t{3}, size_t{100}, bytes.size() / 2, bytes.size() - 64}) {
    write_file(path, bytes.substr(0, size));
    CHECK(failure_of([&] { Speakers{path}; }) == StatusCode::load_failed);
  }
}

TEST("speakers: products of panels are those of plain sums, for every shape and all vectors") {
  std::mt19937 generator(4);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for_all_vectors([&] {
    for (const size_t outputs : {1, 7, 16, 17, 32, 60, 80})
      for (const size_t width : {1, 31, 33, 64})
        for (const size_t count : {1, 5, 12, 29}) {
          constexpr size_t kPieces = 3;
          const size_t depth = kPieces * width;
          std::vector<float> weight(outputs * depth), bias(outputs), in(count * width + 2 * 70 + depth);
          for (auto* values : {&weight, &bias, &in})
            for (float& value : *values)
              value = uniform(generator);
          const Panels panels(weight, bias, outputs);
          constexpr float kUntouched = 77;
          std::vector<float> out(count * (outputs + 1), kUntouched), added(out.size(), 1);
          panels.multiply({in.data(), width, width, kPieces, 70}, count, out.data(), outputs + 1);
          panels.add({in.data(), width, width, kPieces, 70}, count, added.data(), outputs + 1);
          for (size_t row = 0; row < count; ++row) {
            for (size_t i = 0; i < outputs; ++i) {
              double sum = 0;
              for (size_t k = 0; k < depth; ++k)
                sum +=
                    static_cast<double>(weight[i * depth + k]) * in[row * width + k / width * 70 + k % width];
              CHECK(std::fabs(out[row * (outputs + 1) + i] - sum - bias[i]) < 1e-4);
              CHECK(std::fabs(added[row * (outputs + 1) + i] - sum - 1) < 1e-4);
            }
            CHECK(out[row * (outputs + 1) + outputs] == kUntouched);
          }
        }
  });
}

TEST("speakers: products on tiles are those of plain sums but for their last digits") {
  if (processor_bfloat16() != Bfloat16::tiles)
    throw Skipped{"This processor has no AMX, or the kernel forbids it."};
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const size_t outputs : {32, 64})
    for (const size_t width : {32, 96})
      for (const size_t count : {1, 16, 31, 32, 45}) {
        constexpr size_t kPieces = 3, kStep = 70;
        const size_t depth = kPieces * width;
        std::vector<float> weight(outputs * depth), bias(outputs), in(count * 32 + 2 * kStep + width);
        for (auto* values : {&weight, &bias, &in})
          for (float& value : *values)
            value = uniform(generator);
        CHECK(PanelTiles::fits(outputs, width, depth));
        constexpr float kUntouched = 77;
        std::vector<float> out(count * (outputs + 1), kUntouched);
        PanelTiles(weight, bias, outputs)
            .multiply({in.data(), 32, width, kPieces, kStep}, count, out.data(), outputs + 1);
        for (size_t row = 0; row < count; ++row) {
          for (size_t i = 0; i < outputs; ++i) {
            double sum = bias[i];
            for (size_t k = 0; k < depth; ++k)
              sum +=
                  static_cast<double>(weight[i * depth + k]) * in[row * 32 + k / width * kStep + k % width];
            CHECK(std::fabs(out[row * (outputs + 1) + i] - sum) < 1e-3);
          }
          CHECK(out[row * (outputs + 1) + outputs] == kUntouched);
        }
      }
}

TEST("speakers: any number of samples is computed, silent, tiny and huge ones too") {
  Speakers speakers(whole_file());
  for (const size_t count : {size_t{0}, size_t{1}, size_t{159}, size_t{160}, kWindow, kWindow + 1}) {
    const auto logarithms = speakers.segmentation(noise(count), kWindow, {});
    CHECK(logarithms.size() == (count > kWindow ? 2 : 1) * size_t{589} * 7);
    CHECK(finite(logarithms));
  }
  for (const size_t count : {400, 559, 560, 1600, 41000})
    CHECK(finite(speakers.embeddings(noise(count), {}, {})));
  for (const float loudness : {0.0F, 1e-40F, 1e-20F, 1e10F}) {
    CHECK(finite(speakers.segmentation(noise(20000, loudness), kWindow, {})));
    CHECK(finite(speakers.embeddings(noise(20000, loudness), {}, {})));
  }
  // What is no number stays one and ends nothing. JavaScript's samples are made finite before.
  auto broken = noise(20000);
  broken[5000] = std::numeric_limits<float>::quiet_NaN();
  broken[6000] = std::numeric_limits<float>::infinity();
  CHECK(!finite(speakers.segmentation(broken, kWindow, {})));
  CHECK(!finite(speakers.embeddings(broken, {}, {})));
}

TEST("speakers: all vectors and any number of threads compute the same") {
  const auto samples = noise(kWindow + 40000);
  const auto voice = std::span(samples).first(60000);
  Speakers speakers(whole_file());
  const auto logarithms = speakers.segmentation(samples, 40000, {});
  const auto embedding = speakers.embeddings(voice, {}, {});
  const auto short_logarithms = speakers.segmentation(voice, kWindow, {});
  for (const int threads : {2, 3, 8}) {
    Speakers others(whole_file(), threads);
    CHECK(others.segmentation(samples, 40000, {}) == logarithms);
    CHECK(others.embeddings(voice, {}, {}) == embedding);
  }
  for_all_vectors([&] {
    Speakers others(whole_file());
    CHECK(distance(others.segmentation(voice, kWindow, {}), short_logarithms) < 1e-3);
    CHECK(distance(others.embeddings(voice, {}, {}), embedding) < 1e-3);
  });
}

TEST("speakers: a call that was stopped leaves nothing to the next, and two models work at once") {
  const auto samples = noise(kWindow + 16000);
  Speakers speakers(whole_file(), 2);
  const auto expected = speakers.segmentation(samples, 16000, {});
  CancelToken token;
  std::thread stopping([&token] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // in the middle, wherever that is
    token.cancel();
  });
  const auto code = failure_of([&] {
    for (;;)
      speakers.segmentation(samples, 16000, token);
  });
  stopping.join();
  CHECK(code == StatusCode::cancelled);
  CHECK(failure_of([&] { speakers.embeddings(samples, {}, token); }) == StatusCode::cancelled);
  std::vector<float> beside;
  std::thread other([&] { beside = Speakers(whole_file()).segmentation(samples, 16000, {}); });
  const auto again = speakers.segmentation(samples, 16000, {});
  other.join();
  CHECK(again == expected);
  CHECK(beside == expected);
}
