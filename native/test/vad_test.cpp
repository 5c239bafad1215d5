#include "harness.h"

#include "audio/audio_file.h"
#include "vad/silero.h"
#include "vad/silero_weights.h"

#include <ggml.h>
#include <whisper.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>

using namespace voxgate;
using namespace voxgate::test;

namespace {

// The streams are speech (all of the sample), 4 s of it clipped, 4 s of it hardly audible, noise, and
// silence.
std::vector<std::vector<float>> streams() {
  AudioFile file(VOXGATE_SAMPLE_MP3, AudioFormat::mp3);
  const auto speech = file.read(16000 * 11);
  std::vector<std::vector<float>> result(5, {speech.begin(), speech.begin() + 16000 * 4});
  result[0] = speech;
  for (float& sample : result[1])
    sample = std::clamp(50 * sample, -1.0F, 1.0F);
  for (float& sample : result[2])
    sample *= 0.003F;
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& sample : result[3])
    sample = uniform(generator);
  std::fill(result[4].begin(), result[4].end(), 0.0F);
  return result;
}

// The calls do not end where a window ends, so each pads its last one.
std::vector<std::span<const float>> calls(std::span<const float> samples) {
  constexpr std::array<size_t, 6> sizes{1, 511, 5000, 513, 8192, 20001};
  std::vector<std::span<const float>> result;
  for (size_t i = 0; !samples.empty(); ++i) {
    result.push_back(samples.first(std::min(sizes[i % sizes.size()], samples.size())));
    samples = samples.subspan(result.back().size());
  }
  return result;
}

// Computes the network once more: slowly, in double precision, sum by sum. With `halves`, the input of a
// convolution is rounded to half precision first, as whisper.cpp does it.
class Reference {
 public:
  Reference(const SileroWeights& weights, bool halves) : weights_(weights), halves_(halves) {}

  std::vector<double> probabilities(std::span<const float> samples) {
    std::vector<double> result;
    for (; !samples.empty(); samples = samples.subspan(std::min<size_t>(512, samples.size()))) {
      std::vector<double> window(512);
      std::copy_n(samples.begin(), std::min<size_t>(512, samples.size()), window.begin());
      result.push_back(probability(window));
    }
    return result;
  }

 private:
  using Frames = std::vector<std::vector<double>>;

  double probability(const std::vector<double>& window) {
    const auto padded = mirrored(rounded(window));
    Frames frames;
    for (size_t begin = 0; begin + 256 <= padded.size(); begin += 128)
      frames.push_back(spectrum(&padded[begin]));
    constexpr std::array<size_t, 4> strides{1, 2, 2, 1};
    for (size_t layer = 0; layer < strides.size(); ++layer) {
      for (auto& frame : frames)
        frame = rounded(frame);
      frames = convolved(frames, weights_.encoder[layer], strides[layer]);
    }
    advance(frames.at(0));
    const auto hidden = rounded({hidden_.begin(), hidden_.end()});
    double sum = weights_.output.bias[0];
    for (size_t i = 0; i < 128; ++i)
      sum += weights_.output.weight[i] * std::max(hidden[i], 0.0);
    return sigmoid(sum);
  }

  std::vector<double> rounded(std::vector<double> values) const {
    for (double& value : values)
      if (halves_)
        value = ggml_fp16_to_fp32(ggml_fp32_to_fp16(static_cast<float>(value)));
    return values;
  }

  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

  static std::vector<double> mirrored(const std::vector<double>& window) {
    std::vector<double> result(window.rend() - 65, window.rend() - 1);
    result.insert(result.end(), window.begin(), window.end());
    result.insert(result.end(), window.rbegin() + 1, window.rbegin() + 65);
    return result;
  }

  std::vector<double> spectrum(const double* frame) const {
    std::array<double, 258> parts{};
    for (size_t row = 0; row < parts.size(); ++row)
      for (size_t i = 0; i < 256; ++i)
        parts[row] += weights_.stft[row * 256 + i] * frame[i];
    std::vector<double> result(129);
    for (size_t bin = 0; bin < 129; ++bin)
      result[bin] = std::hypot(parts[bin], parts[129 + bin]);
    return result;
  }

  static Frames convolved(const Frames& in, const SileroWeights::Linear& layer, size_t stride) {
    Frames result;
    for (size_t center = 0; center < in.size(); center += stride) {
      auto& frame = result.emplace_back(layer.bias.begin(), layer.bias.end());
      for (size_t output = 0; output < frame.size(); ++output) {
        const float* weights = &layer.weight[output * in[0].size() * 3];
        for (size_t tap = 0; tap < 3; ++tap)
          if (center + tap >= 1 && center + tap - 1 < in.size())
            for (size_t input = 0; input < in[0].size(); ++input)
              frame[output] += weights[input * 3 + tap] * in[center + tap - 1][input];
        frame[output] = std::max(frame[output], 0.0);
      }
    }
    return result;
  }

  void advance(const std::vector<double>& input) {
    std::array<double, 512> gates{};
    for (size_t gate = 0; gate < gates.size(); ++gate) {
      gates[gate] = weights_.input.bias[gate] + weights_.recurrent.bias[gate];
      for (size_t i = 0; i < 128; ++i)
        gates[gate] += weights_.input.weight[gate * 128 + i] * input[i] +
                       weights_.recurrent.weight[gate * 128 + i] * hidden_[i];
    }
    for (size_t i = 0; i < 128; ++i) {
      cell_[i] = sigmoid(gates[128 + i]) * cell_[i] + sigmoid(gates[i]) * std::tanh(gates[256 + i]);
      hidden_[i] = sigmoid(gates[384 + i]) * std::tanh(cell_[i]);
    }
  }

  const SileroWeights& weights_;
  bool halves_;
  std::array<double, 128> hidden_{};
  std::array<double, 128> cell_{};
};

template <typename Values> double largest_difference(const Values& some, const std::vector<double>& others) {
  CHECK(some.size() == others.size());
  double largest = 0;
  for (size_t i = 0; i < others.size(); ++i)
    largest = std::max(largest, std::fabs(some[i] - others[i]));
  return largest;
}

} // namespace

TEST("vad: other files are refused") {
  const auto path = temporary("vad.bin");
  write_file(path, "not a model at all, but longer than a header");
  CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
  CHECK(failure_of([&] { SileroVad vad(temporary("missing.bin")); }) == StatusCode::load_failed);
}

TEST("vad: a name in the header may have 63 bytes and no more") {
  const auto path = temporary("vad.bin");
  const auto reason = [&path](int32_t size) {
    std::string bytes("lmgg", 4);
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += "silero" + std::string(static_cast<size_t>(size) - 6, '-');
    write_file(path, bytes);
    return reason_of([&] { SileroVad vad(path); });
  };
  CHECK(reason(63).ends_with("it ends too early"));
  CHECK(reason(64).ends_with("it is not a Silero model"));
}

TEST("vad: every cut and changed header of the real file is refused") {
  const auto bytes = read_file(weights_from("VOXGATE_TEST_VAD"));
  const auto path = temporary("vad.bin");
  for (const size_t size : {size_t{4}, size_t{60}, size_t{500}, bytes.size() / 2, bytes.size() - 1}) {
    write_file(path, bytes.substr(0, size));
    CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
  }
  for (size_t field = 30; field < 106; field += 4) { // the fields from the window to the last layer
    auto broken = bytes;
    broken[field] = static_cast<char>(broken[field] ^ 0x21);
    write_file(path, broken);
    CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
  }
  const size_t end = bytes.find("reparam_conv.weight") + 19; // the end of the first tensor's header
  for (size_t at = 106; at < end; ++at) {
    auto broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 0x21);
    write_file(path, broken);
    CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
  }
  const auto copy = bytes.substr(106, end - 106) + std::string(99072, '\0');
  write_file(path, bytes + copy); // this has the first tensor twice
  CHECK(failure_of([&] { SileroVad vad(path); }) == StatusCode::load_failed);
}

TEST("vad: blocks of a stream give what one call gives") {
  SileroVad vad(weights_from("VOXGATE_TEST_VAD"));
  AudioFile file(VOXGATE_SAMPLE_MP3, AudioFormat::mp3);
  const auto samples = file.read(16000 * 20);
  const auto whole = vad.probabilities(samples, true, CancelToken());
  CHECK(whole.size() == (samples.size() + 511) / 512);
  std::vector<float> joined;
  const std::span<const float> all(samples);
  for (size_t begin = 0; begin < all.size(); begin += 512 * 10) {
    const auto block = all.subspan(begin, std::min<size_t>(512 * 10, all.size() - begin));
    if (begin == 512 * 100)
      CHECK(vad.probabilities_apart(samples, CancelToken()) == whole); // a stream of its own
    for (const float probability : vad.probabilities(block, begin == 0, CancelToken()))
      joined.push_back(probability);
  }
  CHECK(joined.size() == whole.size());
  CHECK(joined == whole); // equal to the last bit
  CHECK(*std::max_element(whole.begin(), whole.end()) > 0.9F);
  const std::vector<float> silence(512 * 50);
  const auto quiet = vad.probabilities(silence, true, CancelToken());
  CHECK(*std::max_element(quiet.begin(), quiet.end()) < 0.2F);
  CancelToken cancelled;
  cancelled.cancel();
  CHECK(failure_of([&] { vad.probabilities(samples, true, cancelled); }) == StatusCode::cancelled);
}

TEST("vad: probabilities are those of the network in double precision") {
  const auto path = weights_from("VOXGATE_TEST_VAD");
  const auto weights = read_silero_weights(path);
  SileroVad vad(path);
  for (const auto& stream : streams()) {
    Reference reference(weights, false);
    for (const auto& call : calls(stream)) {
      const auto computed = vad.probabilities(call, call.data() == stream.data(), CancelToken());
      CHECK(largest_difference(computed, reference.probabilities(call)) < 5e-5);
    }
  }
}

// Most of the difference to whisper.cpp is its rounding. Its own builds for SSE2 and for AVX-512 are up to
// 5e-4 apart: a sum that is added up in another order is now and then rounded to the other side.
TEST("vad: probabilities are those of whisper.cpp, as far as it does not round") {
  const auto path = weights_from("VOXGATE_TEST_VAD");
  const auto weights = read_silero_weights(path);
  SileroVad vad(path);
  auto params = whisper_vad_default_context_params();
  params.n_threads = 1;
  params.use_gpu = false;
  const std::unique_ptr<whisper_vad_context, decltype(&whisper_vad_free)> context(
      whisper_vad_init_from_file_with_params(path.c_str(), params), whisper_vad_free);
  CHECK(context != nullptr);
  for (const auto& stream : streams()) {
    Reference reference(weights, true);
    whisper_vad_reset_state(context.get());
    for (const auto& call : calls(stream)) {
      CHECK(whisper_vad_detect_speech_no_reset(context.get(), call.data(), static_cast<int>(call.size())));
      const float* probs = whisper_vad_probs(context.get());
      const std::vector<double> peer(probs, probs + whisper_vad_n_probs(context.get()));
      const auto computed = vad.probabilities(call, call.data() == stream.data(), CancelToken());
      CHECK(largest_difference(computed, peer) < 1e-2);
      CHECK(largest_difference(reference.probabilities(call), peer) < 1.5e-3);
    }
  }
}
