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
        check_times(model->transcribe(samples, options, CancelToken()),
                    static_cast<int64_t>(samples.size()) / 16);
      }
    }
  }
}

TEST("whisper: a text ends with the model's positions, also behind the longest prompt") {
  constexpr size_t kWindows = 4; // at most, of a second
  for (const int text_context : {16, 64}) {
    const auto path = temporary("positions.bin");
    write_file(path, synthetic_whisper(1, {.text_context = text_context}));
    const auto model = load_whisper({"whisper", path, "cpu", 1}, CancelToken());
    for (const bool times : {false, true}) {
      auto options = english();
      options.max_tokens = 0;
      options.audio_context = 60;
      options.prompt = std::string(4096, ' ');
      options.times = times;
      options.temperature = 1;
      // Half of the positions, without the last, are the prompt's. It begins with a mark, and the transcript
      // with its own, its language, its task, and that it has no times. The last token needs no position.
      const int marks = times ? 4 : 5;
      const auto room = static_cast<size_t>(text_context - (text_context / 2 - 1 + marks) + 1);
      const size_t count = count_tokens(model->transcribe(noise(16000), options, CancelToken()));
      // Random weights do not end a text by themselves.
      CHECK(times ? count > 0 && count <= kWindows * room : count == room);
      options.temperature = 0;
      options.beams = 5;
      CHECK(count_tokens(model->transcribe(noise(16000), options, CancelToken())) > 0);
    }
  }
}

TEST("whisper: a call leaves nothing behind that shows in the next") {
  const auto model = load_synthetic(1);
  const auto samples = noise(40000);
  auto options = english();
  options.audio_context = 200;
  const auto greedy = model->transcribe(samples, options, CancelToken());
  auto sampled_options = options;
  sampled_options.temperature = 0.8F;
  const auto sampled = model->transcribe(samples, sampled_options, CancelToken());

  auto other = english();
  other.prompt = "something else";
  other.temperature = 1;
  other.max_tokens = 20;
  model->transcribe(noise(kMaxChunkSamples), other, CancelToken());
  other.words = true;
  model->transcribe(noise(16000), other, CancelToken());
  model->detect_language(noise(100000), {0}, CancelToken());

  CHECK(model->transcribe(samples, options, CancelToken()) == greedy);
  CHECK(model->transcribe(samples, sampled_options, CancelToken()) == sampled);
}

TEST("whisper: an aborted call leaves the model as it was") {
  const auto model = load_synthetic(2);
  const auto samples = noise(kMaxChunkSamples);
  for (const bool words : {false, true}) {
    auto options = english();
    options.words = words;
    const auto before = model->transcribe(samples, options, CancelToken());
    for (const int delay_ms : {0, 5, 40, 120, 250}) {
      CancelToken cancel;
      std::thread other([&cancel, delay_ms] {
        std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
        cancel.cancel();
      });
      try {
        model->transcribe(samples, options, cancel);
      } catch (const Failure& failure) {
        CHECK(failure.status().code == StatusCode::cancelled);
      }
      other.join();
    }
    CHECK(model->transcribe(samples, options, CancelToken()) == before);
  }
}

TEST("whisper: languages are the model's own and their probabilities sum to one") {
  const auto model = load_synthetic(1);
  CHECK(model->info().languages.size() == 99 && model->info().multilingual);
  const auto guesses = model->detect_language(noise(30000), {100}, CancelToken()).front();
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
  const auto plain = model->transcribe(samples, options, CancelToken());
  CHECK(text_of(plain).find("your country") != std::string::npos);
  options.words = true;
  const auto aligned = model->transcribe(samples, options, CancelToken());
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

TEST("whisper: beside a text in doubt a more probable one is looked for in the same call") {
  const auto model = load_whisper({"whisper", weights_from("VOXGATE_TEST_MODEL"), "cpu", 1}, CancelToken());
  const auto mean = [](const std::vector<Segment>& segments) {
    double sum = static_cast<double>(segments.back().end_logprob);
    for (const auto& segment : segments) {
      for (const auto& token : segment.tokens)
        sum += static_cast<double>(token.logprob);
    }
    return sum / static_cast<double>(count_tokens(segments) + 1);
  };
  int surer = 0;
  for (const float loudness : {0.05F, 0.1F, 0.2F}) {
    auto samples = speech();
    const auto hiss = noise(samples.size());
    for (size_t i = 0; i < samples.size(); ++i)
      samples[i] += loudness * hiss[i];
    auto options = english();
    options.max_tokens = 0;
    options.audio_context = 640;
    options.times = false;
    const auto first = model->transcribe(samples, options, CancelToken());
    const auto with = [&](float least, float sure) {
      options.doubt = {least, sure, 5};
      return model->transcribe(samples, options, CancelToken());
    };
    const auto score = static_cast<float>(mean(first));
    CHECK(with(-1, score - 0.01F) == first);
    CHECK(with(score + 0.01F, 0) == first);
    const auto second = with(-1, 0);
    CHECK(second == first || mean(second) > mean(first));
    surer += second == first ? 0 : 1;
    options.words = true;
    const auto aligned = with(-1, 0);
    CHECK(text_of(aligned) == text_of(second));
    check_times(aligned, 11000);
  }
  CHECK(surer > 0);
}

TEST("whisper: the words of a window that is cut end where the next window begins") {
  const auto model = load_whisper({"whisper", weights_from("VOXGATE_TEST_MODEL"), "cpu", 1}, CancelToken());
  const auto sentence = speech();
  auto samples = sentence;
  samples.resize(samples.size() + 8000);
  samples.insert(samples.end(), sentence.begin(), sentence.begin() + 6 * 16000);
  const auto end_ms = static_cast<int64_t>(samples.size()) / 16;
  auto options = english();
  options.words = options.times = true;
  options.max_tokens = 30; // the text ends in the second sentence, and the next window begins there
  options.audio_context = 960;
  const auto segments = model->transcribe(samples, options, CancelToken());
  check_times(segments, end_ms);
  CHECK(segments.size() > 1);
  for (size_t i = 1; i < segments.size(); ++i) // frames are of 10 ms
    CHECK(segments[i - 1].tokens.back().end_ms <= segments[i].start_ms + 10);
}
