#include "backends/fake/fake_backend.h"

#include "backends/registry.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <ggml.h>
#include <sstream>
#include <thread>
#include <variant>

namespace voxgate {
namespace {

using Milliseconds = std::chrono::milliseconds;

struct Delay {
  int ms;
  bool interruptible;
};
struct Touch {
  std::string path;
};
struct Fail {
  std::string message;
};
struct Crash {
  std::string how;
};
using Step = std::variant<Delay, Touch, Fail, Crash, Segment>;

struct Script {
  int load_delay_ms = 0;
  std::string load_failure;
  std::vector<LanguageProbability> languages;
  int audio_context = 1500;
  std::vector<Step> steps;
};

void wait(const Delay& delay, const CancelToken& cancel) {
  const auto end = std::chrono::steady_clock::now() + Milliseconds(delay.ms);
  while (std::chrono::steady_clock::now() < end) {
    if (delay.interruptible)
      cancel.check();
    std::this_thread::sleep_for(Milliseconds(1));
  }
}

void end_process(const Crash& crash) {
  const volatile uintptr_t nowhere = 0;
  if (crash.how == "memory")
    *reinterpret_cast<volatile int*>(nowhere) = 1; // NOLINT(performance-no-int-to-ptr): it has to crash
  GGML_ASSERT(crash.how != "assert");
  const auto fail = [] { throw Failure(StatusCode::inference_failed, "thrown"); };
  const auto terminate = [&fail]() noexcept { fail(); }; // NOLINT(bugprone-exception-escape): it has to crash
  terminate();
}

Segment make_segment(int64_t start_ms, int64_t end_ms, const std::string& text) {
  Segment segment;
  segment.start_ms = start_ms;
  segment.end_ms = end_ms;
  segment.no_speech_prob = 0.01F;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    segment.tokens.push_back({0, " " + word, -0.1F, 0, 0});
  const auto count = static_cast<int64_t>(segment.tokens.size());
  for (int64_t i = 0; i < count; ++i) {
    auto& token = segment.tokens[static_cast<size_t>(i)];
    token.id = static_cast<int32_t>(i + 1);
    token.start_ms = start_ms + (end_ms - start_ms) * i / count;
    token.end_ms = start_ms + (end_ms - start_ms) * (i + 1) / count;
  }
  return segment;
}

std::string rest_of(std::istringstream& line) {
  std::string text;
  std::getline(line >> std::ws, text);
  return text;
}

void parse_line(const std::string& text, Script& script) {
  std::istringstream line(text);
  std::string word;
  line >> word;
  int number = 0;
  if (word == "load_delay_ms" && line >> number) {
    script.load_delay_ms = number;
  } else if (word == "load_fail") {
    script.load_failure = rest_of(line);
  } else if (word == "audio_context" && line >> number) {
    script.audio_context = number;
  } else if (word == "delay_ms" && line >> number) {
    script.steps.emplace_back(Delay{number, true});
  } else if (word == "ignore_cancel_ms" && line >> number) {
    script.steps.emplace_back(Delay{number, false});
  } else if (word == "touch") {
    script.steps.emplace_back(Touch{rest_of(line)});
  } else if (word == "fail") {
    script.steps.emplace_back(Fail{rest_of(line)});
  } else if (word == "crash") {
    script.steps.emplace_back(Crash{rest_of(line)});
  } else if (LanguageProbability guess; word == "language" && line >> guess.language >> guess.probability) {
    script.languages.push_back(guess);
  } else if (int64_t start = 0, end = 0; word == "segment" && line >> start >> end) {
    script.steps.emplace_back(make_segment(start, end, rest_of(line)));
  } else {
    throw Failure(StatusCode::load_failed, "Unknown line in fake model: " + text);
  }
}

Script read_script(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || line != "voxgate-fake 1")
    throw Failure(StatusCode::load_failed, "Cannot use model file " + path + ": it is not a fake model");
  Script script;
  while (std::getline(file, line)) {
    if (!line.empty() && !line.starts_with('#'))
      parse_line(line, script);
  }
  if (script.languages.empty())
    script.languages.push_back({"en", 1.0F});
  return script;
}

class FakeBackend final : public Backend {
 public:
  explicit FakeBackend(Script script) : script_(std::move(script)) {
    info_.family = "fake";
    for (const auto& guess : script_.languages)
      info_.languages.push_back(guess.language);
    info_.multilingual = info_.languages.size() > 1;
    info_.audio_context = script_.audio_context;
    info_.text_context = 448;
    info_.memory_bytes = 1024;
  }

  const ModelInfo& info() const override { return info_; }

  std::vector<Segment> transcribe(std::span<const float>, const ChunkOptions&,
                                  const CancelToken& cancel) override {
    std::vector<Segment> segments;
    for (const auto& step : script_.steps) {
      run(step, cancel);
      if (const auto* segment = std::get_if<Segment>(&step))
        segments.push_back(*segment);
    }
    cancel.check();
    return segments;
  }

  std::vector<Languages> detect_language(std::span<const float>, const DetectionOptions& options,
                                         const CancelToken& cancel) override {
    for (const auto& step : script_.steps)
      run(step, cancel);
    auto guesses = script_.languages;
    std::ranges::stable_sort(guesses, std::ranges::greater{}, &LanguageProbability::probability);
    return std::vector(1 + options.parts.size(), guesses);
  }

 private:
  static void run(const Step& step, const CancelToken& cancel) {
    if (const auto* delay = std::get_if<Delay>(&step))
      wait(*delay, cancel);
    else if (const auto* touch = std::get_if<Touch>(&step))
      std::ofstream{touch->path};
    else if (const auto* fail = std::get_if<Fail>(&step))
      throw Failure(StatusCode::inference_failed, fail->message);
    else if (const auto* crash = std::get_if<Crash>(&step))
      end_process(*crash);
    else
      cancel.check();
  }

  Script script_;
  ModelInfo info_;
};

const FamilyRegistration registration{"fake", load_fake};

} // namespace

std::unique_ptr<Backend> load_fake(const LoadOptions& options, const CancelToken& cancel) {
  auto script = read_script(options.path);
  wait({script.load_delay_ms, true}, cancel);
  if (!script.load_failure.empty())
    throw Failure(StatusCode::load_failed, script.load_failure);
  return std::make_unique<FakeBackend>(std::move(script));
}

} // namespace voxgate
