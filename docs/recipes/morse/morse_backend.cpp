// Morse code (ITU-R M.1677-1): one tone that is keyed on and off. A dot lasts one unit of time and a dash
// three; letters are three units apart, words seven. The weights are "voxgate-morse 1", the tone in Hz, the
// unit in ms.
#include "backends/registry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <utility>

namespace voxgate {
namespace {

constexpr size_t kFrameSamples = kSampleRate / 100;
constexpr int64_t kFrameMs = 10;
constexpr float kSilence = 0.01F * 0.01F; // squared amplitude
// A letter and its code. The id of a token is its place here, or the one behind the last for a code without a
// letter.
constexpr std::array<std::string_view, 39> kCodes{
    "A.-",    "B-...",  "C-.-.",  "D-..",   "E.",     "F..-.",  "G--.",    "H....",   "I..",    "J.---",
    "K-.-",   "L.-..",  "M--",    "N-.",    "O---",   "P.--.",  "Q--.-",   "R.-.",    "S...",   "T-",
    "U..-",   "V...-",  "W.--",   "X-..-",  "Y-.--",  "Z--..",  "0-----",  "1.----",  "2..---", "3...--",
    "4....-", "5.....", "6-....", "7--...", "8---..", "9----.", "..-.-.-", ",--..--", "?..--.."};

// Frames during which the key was down; the last one is not included.
struct Mark {
  size_t first, last;
};

class MorseBackend final : public Backend {
 public:
  explicit MorseBackend(const std::string& path) {
    std::string magic;
    double version = 0, tone_hz = 0, unit_ms = 0;
    if (std::filesystem::file_size(path) < 100) // throws where there is no file
      std::ifstream(path) >> magic >> version >> tone_hz >> unit_ms;
    const bool usable = tone_hz >= 100 && tone_hz <= 4000 && unit_ms >= 30 && unit_ms <= 500;
    if (magic != "voxgate-morse" || version != 1 || !usable)
      throw Failure(StatusCode::load_failed, "Cannot use model file " + path + ": it is no Morse model");
    unit_ = unit_ms / kFrameMs;
    coefficient_ = static_cast<float>(2 * std::cos(2 * std::numbers::pi * tone_hz / kSampleRate));
    info_.family = "morse";
    info_.languages = {"en"};
    info_.memory_bytes = sizeof(*this);
  }

  const ModelInfo& info() const override { return info_; }

  std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions&,
                                  const CancelToken& cancel) override {
    Segment segment;
    segment.tokens = letters_of(marks_of(samples, cancel));
    if (segment.tokens.empty())
      return {};
    segment.start_ms = segment.tokens.front().start_ms;
    segment.end_ms = segment.tokens.back().end_ms;
    return {segment};
  }

  std::vector<Languages> detect_language(std::span<const float>, const DetectionOptions&,
                                         const CancelToken&) override {
    return {{{"en", 1.0F}}};
  }

 private:
  // Goertzel's algorithm: the squared amplitude of the tone, without the rest of a Fourier transform.
  float power(std::span<const float> frame) const {
    float last = 0;
    float before = 0;
    for (const float sample : frame)
      before = std::exchange(last, sample + coefficient_ * last - before);
    const float scale = 2.0F / kFrameSamples;
    return (last * last + before * before - coefficient_ * last * before) * scale * scale;
  }

  // The key is down where the tone has more than half the amplitude that it has where it is loudest.
  std::vector<Mark> marks_of(std::span<const float> samples, const CancelToken& cancel) const {
    std::vector<float> powers;
    for (; samples.size() >= kFrameSamples; samples = samples.subspan(kFrameSamples)) {
      cancel.check();
      powers.push_back(power(samples.first(kFrameSamples)));
    }
    powers.push_back(0); // ends a mark that lasts to the end
    const float least = std::max(kSilence, *std::ranges::max_element(powers) / 4);
    std::vector<Mark> marks;
    for (size_t i = 0, first = 0; i < powers.size(); ++i) {
      if (powers[i] > least)
        continue;
      if (first < i)
        marks.push_back({first, i});
      first = i + 1;
    }
    return marks;
  }

  // The first letter of a word begins with a space, as the tokens of most models do.
  std::vector<Token> letters_of(const std::vector<Mark>& marks) const {
    const auto longer = [this](size_t from, size_t to, double units) {
      return double(to - from) > units * unit_;
    };
    std::vector<Token> letters;
    std::string code;
    for (size_t i = 0, first = 0; i < marks.size(); ++i) {
      code += longer(marks[i].first, marks[i].last, 2) ? '-' : '.';
      if (i + 1 < marks.size() && !longer(marks[i].last, marks[i + 1].first, 2))
        continue;
      const auto known = std::ranges::find(kCodes, code, [](auto entry) { return entry.substr(1); });
      std::string bytes = first == 0 || longer(marks[first - 1].last, marks[first].first, 5) ? " " : "";
      bytes += known == kCodes.end() ? "\uFFFD" : known->substr(0, 1);
      letters.push_back({static_cast<int32_t>(known - kCodes.begin()), bytes, 0,
                         static_cast<int64_t>(marks[first].first) * kFrameMs,
                         static_cast<int64_t>(marks[i].last) * kFrameMs});
      code.clear();
      first = i + 1;
    }
    return letters;
  }

  double unit_; // frames
  float coefficient_;
  ModelInfo info_;
};

std::unique_ptr<Backend> load_morse(const LoadOptions& options, const CancelToken&) {
  return std::make_unique<MorseBackend>(options.path);
}

const FamilyRegistration registration{"morse", load_morse};

} // namespace
} // namespace voxgate
