#include "harness.h"
#include "synthetic_whisper.h"
#include "whisper_fixtures.h"

#include "backends/whisper/whisper_backend.h"

#include <cmath>
#include <thread>

using namespace voxgate;
using namespace voxgate::test;

TEST("whisper: random weights run through every path and keep the times in order") {
  struct Input {
    size_t samples;
    int audio_context;
  };
  for (unsigned seed = 1; seed <= 2; ++seed) {
    const auto model = load_synthetic(seed);
    for (const Input input : {Input{1, 0}, Input{8000, 1}, Input{50000, 60}, Input{kMaxChunkSamples, 0}}) {
      if (input.samples == kMaxChunkSamples && seed != 1)
        continue; // this would be minutes of work under the sanitizers
      for (const bool words : {false, true}) {
        auto options = english();
        options.words = words;
        options.temperature = words ? 0 : 0.4F;
        options.max_tokens = 12;
        options.audio_context = input.audio_context; // too small on purpose in some cases
        options.prompt = std::string(9000, 'a') + " \xC3\xA9 and the rest";
        const auto samples = noise(input.samples);
        check_times(model->transcribe(samples, options, {}, CancelToken()),
                    static_cast<int64_t>(samples.size()) / 16);
      }
    }
  }
}

TEST("whisper: a call leaves nothing behind that shows in the next") {
  const auto model = load_synthetic(1);
  const auto samples = noise(40000);
  auto options = english();
  options.audio_context = 200;
  const auto greedy = model->transcribe(samples, options, {}, CancelToken());
  auto sampled_options = options;
  sampled_options.temperature = 0.8F;
  const auto sampled = model->transcribe(samples, sampled_options, {}, CancelToken());

  auto other = english();
  other.prompt = "something else";
  other.temperature = 1;
  other.max_tokens = 20;
  model->transcribe(noise(kMaxChunkSamples), other, {}, CancelToken());
  other.words = true;
  model->transcribe(noise(16000), other, {}, CancelToken());
  model->detect_language(noise(100000), {0}, CancelToken());

  CHECK(model->transcribe(samples, options, {}, CancelToken()) == greedy);
  CHECK(model->transcribe(samples, sampled_options, {}, CancelToken()) == sampled);
}

TEST("whisper: an aborted call leaves the model as it was") {
  const auto model = load_synthetic(2);
  const auto samples = noise(kMaxChunkSamples);
  for (const bool words : {false, true}) {
    auto options = english();
    options.words = words;
    const auto before = model->transcribe(samples, options, {}, CancelToken());
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
    CHECK(model->transcribe(samples, options, {}, CancelToken()) == before);
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
  options.max_tokens = 0;
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
  // Only the alignment gives the tokens of one segment ends that differ from their neighbors'.
  int moments = 0;
  int64_t last = 0;
  for (const auto& segment : aligned) {
    for (const auto& token : segment.tokens) {
      moments += token.end_ms > last ? 1 : 0;
      last = std::max(last, token.end_ms);
    }
  }
  CHECK(moments > 15);
}
