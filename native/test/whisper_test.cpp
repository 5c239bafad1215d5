#include "harness.h"
#include "synthetic_whisper.h"

#include "audio/audio_file.h"
#include "backends/whisper/whisper_backend.h"
#include "backends/whisper/whisper_internals.h"
#include "backends/whisper/whisper_prompt.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

using namespace voxgate;
using namespace voxgate::test;

namespace {

std::unique_ptr<Backend> load_synthetic(unsigned seed, int threads = 1) {
  const auto path = temporary("synthetic.bin");
  write_file(path, synthetic_whisper(seed));
  return load_whisper({"whisper", path, "cpu", threads}, CancelToken());
}

std::vector<float> noise(size_t count) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i)
    samples[i] = 0.2F * std::sin(static_cast<float>(i * i % 7919));
  return samples;
}

std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const auto& segment : segments) {
    for (const auto& token : segment.tokens)
      text += token.bytes;
  }
  return text;
}

std::vector<int32_t> ids_of(const std::vector<Segment>& segments) {
  std::vector<int32_t> ids;
  for (const auto& segment : segments) {
    for (const auto& token : segment.tokens)
      ids.push_back(token.id);
  }
  return ids;
}

// Ids and probabilities, to the last bit.
std::vector<std::pair<int32_t, float>> tokens_of(const std::vector<Segment>& segments) {
  std::vector<std::pair<int32_t, float>> tokens;
  for (const auto& segment : segments) {
    for (const auto& token : segment.tokens)
      tokens.emplace_back(token.id, token.logprob);
  }
  return tokens;
}

void check_times(const std::vector<Segment>& segments, int64_t limit_ms) {
  int64_t last = 0;
  for (const auto& segment : segments) {
    CHECK(segment.start_ms >= 0 && segment.start_ms <= segment.end_ms && segment.end_ms <= limit_ms);
    for (const auto& token : segment.tokens) {
      CHECK(token.start_ms >= last && token.start_ms <= token.end_ms && token.end_ms <= limit_ms);
      last = token.start_ms;
    }
  }
}

ChunkOptions english() {
  ChunkOptions options;
  options.language = "en";
  return options;
}

std::vector<float> speech() {
  AudioFile file(VOXGATE_SAMPLE_MP3);
  return file.read(16000 * 30);
}

} // namespace

TEST("whisper: prompts are split into words as whisper.cpp does it") {
  std::vector<std::string> words;
  const auto split = [&words](std::string_view text) {
    words.clear();
    tokenize_prompt(text, 1000, [&words](std::string_view word) {
      words.emplace_back(word);
      return 1;
    });
    return words;
  };
  using Words = std::vector<std::string>;
  CHECK(split("It's 12 o'clock!") == (Words{"It", "'s", " 12", " o", "'", "clock", "!"}));
  CHECK(split("a  b\nc \n d ") == (Words{"a", " ", " b", "\n", "c", " \n", " d", " "}));
  CHECK(split("\xE4\xBD\xA0\xE5\xA5\xBD ok") == (Words{"\xE4\xBD\xA0\xE5\xA5\xBD", " ok"}));
  CHECK(split("").empty());
  const auto known = [](std::string_view piece) { return piece == "ab" ? 1 : piece == "a" ? 2 : -1; };
  CHECK(tokenize_prompt("aba-ab", 8, known) == (std::vector<int32_t>{1, 2, 1}));
}

TEST("whisper: random weights run through every path and keep the times in order") {
  struct Input {
    size_t samples;
    int audio_context;
  };
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const auto model = load_synthetic(seed);
    for (const Input input : {Input{1, 0}, Input{8000, 1}, Input{50000, 60}, Input{kMaxChunkSamples, 0}}) {
      if (input.samples == kMaxChunkSamples && seed != 1)
        continue; // minutes of work under the sanitizers
      for (const bool words : {false, true}) {
        auto options = english();
        options.words = words;
        options.temperature = words ? 0 : 0.4F;
        options.max_tokens = 12;
        options.audio_context = input.audio_context; // may be too small on purpose
        options.prompt = std::string(9000, 'a') + " \xC3\xA9 and the rest";
        const auto samples = noise(input.samples);
        check_times(model->transcribe(samples, options, {}, CancelToken()),
                    static_cast<int64_t>(samples.size()) / 16);
      }
    }
  }
}

TEST("whisper: words are aligned behind our guard") {
  const auto model = load_synthetic(1);
  auto options = english();
  options.words = true;
  options.max_tokens = 12;
  const int before = whisper_internals::alignments_done();
  CHECK(!model->transcribe(noise(80000), options, {}, CancelToken()).empty());
  CHECK(whisper_internals::alignments_done() > before);
}

TEST("whisper: no call shows in the next") {
  const auto model = load_synthetic(1);
  const auto samples = noise(40000);
  auto options = english();
  options.max_tokens = 30;
  options.audio_context = 200;
  const auto greedy = ids_of(model->transcribe(samples, options, {}, CancelToken()));
  auto sampled_options = options;
  sampled_options.temperature = 0.8F;
  const auto sampled = ids_of(model->transcribe(samples, sampled_options, {}, CancelToken()));

  auto other = english();
  other.prompt = "something else";
  other.temperature = 1;
  other.max_tokens = 20;
  model->transcribe(noise(kMaxChunkSamples), other, {}, CancelToken());
  other.words = true;
  model->transcribe(noise(16000), other, {}, CancelToken());
  model->detect_language(noise(100000), {0}, CancelToken());

  CHECK(ids_of(model->transcribe(samples, options, {}, CancelToken())) == greedy);
  CHECK(ids_of(model->transcribe(samples, sampled_options, {}, CancelToken())) == sampled);
}

TEST("whisper: an aborted call leaves the model as it was") {
  const auto model = load_synthetic(2);
  const auto samples = noise(kMaxChunkSamples);
  for (const bool words : {false, true}) {
    auto options = english();
    options.words = words;
    const auto before = ids_of(model->transcribe(samples, options, {}, CancelToken()));
    for (const int delay_ms : {0, 5, 40, 120, 250}) {
      CancelToken cancel;
      std::thread other([&cancel, delay_ms] {
        std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
        cancel.cancel();
      });
      try {
        model->transcribe(samples, options, {}, cancel);
      } catch (const Failure& failure) {
        CHECK(failure.status().code == StatusCode::cancelled);
      }
      other.join();
    }
    CHECK(ids_of(model->transcribe(samples, options, {}, CancelToken())) == before);
  }
}

TEST("whisper: what a detection has encoded is not encoded again, and nothing else is taken for it") {
  const auto model = load_synthetic(2);
  const auto samples = noise(90000);
  for (const bool words : {false, true}) {
    auto options = english();
    options.words = words;
    options.audio_context = 400;
    options.max_tokens = 30;
    const auto skipped_by = [&](std::span<const float> heard, const ChunkOptions& with) {
      const int before = whisper_internals::encodings_skipped();
      model->transcribe(heard, with, {}, CancelToken());
      return whisper_internals::encodings_skipped() - before;
    };
    const auto plain = ids_of(model->transcribe(samples, options, {}, CancelToken()));
    model->detect_language(samples, {400, words}, CancelToken());
    const int before = whisper_internals::encodings_skipped();
    CHECK(ids_of(model->transcribe(samples, options, {}, CancelToken())) == plain);
    CHECK(whisper_internals::encodings_skipped() - before == 3);
    CHECK(skipped_by(samples, options) == 0); // used up

    model->detect_language(samples, {400, words}, CancelToken());
    auto other = samples;
    other.back() += 0.1F;
    CHECK(skipped_by(other, options) == 0);
    model->detect_language(samples, {401, words}, CancelToken());
    CHECK(skipped_by(samples, options) == 0);
    model->detect_language(samples, {400, !words}, CancelToken());
    CHECK(skipped_by(samples, options) == 0);
    CHECK(ids_of(model->transcribe(samples, options, {}, CancelToken())) == plain);
  }
}

TEST("whisper: languages are the model's own and their probabilities sum to one") {
  const auto model = load_synthetic(1);
  CHECK(model->info().languages.size() == 99 && model->info().multilingual);
  const auto guesses = model->detect_language(noise(30000), {100}, CancelToken());
  CHECK(guesses.size() == 99 && guesses[0].probability >= guesses[98].probability);
  double sum = 0;
  for (const auto& guess : guesses)
    sum += guess.probability;
  CHECK(std::fabs(sum - 1) < 1e-4);
}

TEST("whisper: a device that is not there is a load failure") {
  const auto path = temporary("synthetic.bin");
  write_file(path, synthetic_whisper(1));
  const auto load = [&path](const std::string& device) {
    return failure_of([&] { load_whisper({"whisper", path, device, 1}, CancelToken()); });
  };
  CHECK(load("cuda:99") == StatusCode::load_failed);
  CHECK(load("cuda:x") == StatusCode::invalid_argument);
}

TEST("whisper: real weights hear the speech, with and without words") {
  const auto model = load_whisper({"whisper", weights_from("VOXGATE_TEST_MODEL"), "cpu", 1}, CancelToken());
  const auto samples = speech();
  auto options = english();
  options.audio_context = 600;
  int emitted = 0;
  double progress = 0;
  const ChunkEvents events{[&emitted](const Segment&) { ++emitted; },
                           [&progress](double fraction) {
                             CHECK(fraction >= progress);
                             progress = fraction;
                           }};
  const auto plain = model->transcribe(samples, options, events, CancelToken());
  CHECK(text_of(plain).find("your country") != std::string::npos);
  CHECK(emitted == static_cast<int>(plain.size()) && progress == 1);
  options.words = true;
  const auto aligned = model->transcribe(samples, options, {}, CancelToken());
  CHECK(text_of(aligned) == text_of(plain));
  check_times(aligned, 11000);
  int moments = 0; // only the alignment gives tokens of one segment ends that differ from their neighbours'
  int64_t last = 0;
  for (const auto& segment : aligned) {
    for (const auto& token : segment.tokens) {
      moments += token.end_ms > last ? 1 : 0;
      last = std::max(last, token.end_ms);
    }
  }
  CHECK(moments > 15);
}

TEST("whisper: how many threads compute changes nothing") {
  const auto samples = noise(12 * kSampleRate);
  for (const bool words : {false, true}) {
    auto options = english();
    options.audio_context = 640; // above 512 ggml divides the attention of a token among the threads
    options.words = words;
    const auto alone = tokens_of(load_synthetic(3, 1)->transcribe(samples, options, {}, CancelToken()));
    CHECK(!alone.empty());
    for (const int threads : {2, 3, 5})
      CHECK(tokens_of(load_synthetic(3, threads)->transcribe(samples, options, {}, CancelToken())) == alone);
  }
}

TEST("whisper: lanes give side by side what one gives alone") {
  const auto first = load_synthetic(5, 2);
  CHECK(first->info().lanes == 2);
  CHECK(load_synthetic(5, 1)->info().lanes == 1);
  CHECK(!load_synthetic(5, 1)->lane_factory());
  CHECK(first->lane_factory()()->info().memory_bytes < first->info().memory_bytes);
  const auto samples = noise(12 * kSampleRate);
  auto options = english();
  options.audio_context = 640;
  const auto plain = tokens_of(first->transcribe(samples, options, {}, CancelToken()));
  options.words = true;
  const auto aligned = tokens_of(first->transcribe(samples, options, {}, CancelToken()));

  // One aligns while the other does not, which is set in what lanes do not share.
  std::vector<std::vector<std::pair<int32_t, float>>> heard;
  std::jthread other([&, make = first->lane_factory()] {
    const auto lane = make();
    for (int i = 0; i < 3; ++i)
      heard.push_back(tokens_of(lane->transcribe(samples, options, {}, CancelToken())));
  });
  auto untimed = options;
  untimed.words = false;
  for (int i = 0; i < 3; ++i)
    CHECK(tokens_of(first->transcribe(samples, untimed, {}, CancelToken())) == plain);
  other.join();
  CHECK(heard.size() == 3);
  for (const auto& tokens : heard)
    CHECK(tokens == aligned);
}

TEST("whisper: a lane that is cancelled leaves the others alone, and the last one takes the weights along") {
  auto first = load_synthetic(6, 3);
  const auto make = first->lane_factory();
  auto second = make();
  auto third = make();
  const auto make_of_third = third->lane_factory(); // keeps nothing
  const auto samples = noise(5 * kSampleRate);
  const auto expected = tokens_of(first->transcribe(samples, english(), {}, CancelToken()));
  CancelToken cancelled;
  StatusCode outcome{};
  std::jthread other([&] {
    cancelled.cancel();
    outcome = failure_of([&] { second->transcribe(samples, english(), {}, cancelled); });
  });
  CHECK(tokens_of(first->transcribe(samples, english(), {}, CancelToken())) == expected);
  other.join();
  CHECK(outcome == StatusCode::cancelled);
  first.reset();
  CHECK(tokens_of(second->transcribe(samples, english(), {}, CancelToken())) == expected);
  second.reset();
  CHECK(tokens_of(third->transcribe(samples, english(), {}, CancelToken())) == expected);
  third.reset();
  CHECK(failure_of([&] { make(); }) == StatusCode::closed);
  CHECK(failure_of([&] { make_of_third(); }) == StatusCode::closed);
}
