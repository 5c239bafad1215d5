#include "harness.h"
#include "resident_pages.h"
#include "synthetic_whisper.h"
#include "upstream_whisper.h"
#include "whisper_fixtures.h"

#include "backends/whisper/whisper_backend.h"
#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_internals.h"
#include "backends/whisper/whisper_seams.h"

#include <whisper.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Each row of the table in whisper_seams.h has a test here, which fails where whisper.cpp runs its own
// code.

using namespace voxgate;
using namespace voxgate::test;

namespace {

SeamCounts counted_during(const std::function<void()>& action) {
  seam_counts = {};
  action();
  return seam_counts;
}

ChunkOptions short_answer(bool words = false) {
  auto options = english();
  options.words = words;
  options.max_tokens = 12;
  options.audio_context = 300;
  return options;
}

} // namespace

TEST("whisper seams: the spectrogram is ours") {
  const auto model = load_synthetic(1);
  const auto counts = counted_during([&] { model->transcribe(noise(40000), short_answer(), CancelToken()); });
  CHECK(counts.spectrograms == 1 && counts.spectrograms_skipped == 0);
}

// The probability is taken from the row that belongs to the start of the transcript, as in OpenAI's
// decoding.py.
TEST("whisper seams: the probability of no speech is that of the audio at hand") {
  const auto samples = noise(40000);
  const Upstream upstream;
  auto* context = upstream.context.get();
  const auto by_hand = [&](std::vector<whisper_token> tokens) {
    ThreadBudget budget(1);
    const CancelToken cancel;
    CallScope scope(*upstream.state, budget, cancel);
    whisper_internals::set_audio_context(*upstream.state, 300);
    scope.set_window(whisper_internals::window_of(*context, *upstream.state, 125));
    CHECK(whisper_pcm_to_mel_with_state(context, upstream.state.get(), samples.data(),
                                        static_cast<int>(samples.size()), 1) == 0);
    CHECK(whisper_encode_with_state(context, upstream.state.get(), 0, 1) == 0);
    const auto count = static_cast<int>(tokens.size());
    CHECK(whisper_decode_with_state(context, upstream.state.get(), tokens.data(), count, 0, 1) == 0);
    const int vocabulary = whisper_n_vocab(context);
    const float* last = whisper_get_logits_from_state(upstream.state.get()); // the only row
    double sum = 0;
    for (int id = 0; id < vocabulary; ++id)
      sum += std::exp(last[id]);
    return std::exp(last[whisper_token_nosp(context)]) / sum;
  };
  constexpr whisper_token kSpace = 220; // no letter is in the vocabulary
  const auto without_prompt = by_hand({whisper_token_sot(context)});
  const auto with_prompt = by_hand({whisper_token_prev(context), kSpace, kSpace, whisper_token_sot(context)});
  CHECK(std::abs(with_prompt / without_prompt - 1) > 0.1);

  const auto model = load_synthetic(4);
  const auto heard = [&](const std::string& prompt) {
    auto options = short_answer();
    options.prompt = prompt;
    return model->transcribe(samples, options, CancelToken()).at(0).no_speech_prob;
  };
  for (int round = 0; round < 2; ++round) {
    CHECK(std::abs(heard("") / without_prompt - 1) < 1e-3);
    CHECK(std::abs(heard("x  ") / with_prompt - 1) < 1e-3);
  }
}

TEST("whisper seams: words are aligned by our code") {
  const auto model = load_synthetic(1);
  const auto counts = counted_during(
      [&] { CHECK(!model->transcribe(noise(80000), short_answer(true), CancelToken()).empty()); });
  CHECK(counts.alignments == 1);
}

TEST("whisper seams: tokens are aligned as they were decoded") {
  const Upstream upstream;
  const auto& [context, state] = upstream;
  ThreadBudget budget(1);
  const CancelToken never;
  whisper_internals::set_audio_context(*state, 300);
  CallScope scope(*state, budget, never);
  scope.set_window(whisper_internals::window_of(*context, *state, 125));
  CHECK(whisper_internals::compute_spectrogram(*context, *state, noise(40000), 1));
  CHECK(whisper_internals::encode_window(*context, *state, 0, 1));
  const std::vector<int32_t> text{220, 300, 17, 220, 41, 300};
  const auto prompt = whisper_internals::decoder_prompt(*context, {}, "en", false, false);
  const auto length = static_cast<int>(prompt.tokens.size());
  whisper_internals::reserve_tokens(*context, *state, length + static_cast<int>(text.size()));
  const auto align = [&](whisper_internals::KeptScores kept) {
    return whisper_internals::align_text(*context, *state, text, "en", false, 125, 1, std::move(kept));
  };
  const auto anew = align({});
  CHECK(anew.size() == text.size());
  // The last token of a text that was cut is not decoded.
  for (const size_t decoded : {text.size(), text.size() - 1}) {
    whisper_internals::KeptScores kept;
    whisper_internals::decode_prompt(*context, *state, prompt, 1, &kept);
    for (size_t i = 0; i < decoded; ++i)
      whisper_internals::decode_extensions(*context, *state, std::vector{Extension{0, text[i], i}},
                                           length + static_cast<int>(i), 1, false, &kept);
    const auto counts = counted_during([&] { CHECK(align(kept) == anew); });
    CHECK(counts.tokens_aligned_as_decoded == length + static_cast<int>(decoded));
    kept.tokens.back() = 5; // of another text
    CHECK(counted_during([&] { CHECK(align(kept) == anew); }).tokens_aligned_as_decoded == 0);
  }
  whisper_internals::KeptScores scored;
  const auto logprobs = whisper_internals::score_text(*context, *state, prompt, text, 1);
  CHECK(whisper_internals::score_text(*context, *state, prompt, text, 1, &scored) == logprobs);
  CHECK(align(std::move(scored)) == anew);
}

TEST("whisper seams: a text beside a known one has what that one has before it, and no more") {
  const Upstream upstream;
  ThreadBudget budget(1);
  const CancelToken never;
  const CallScope scope(*upstream.state, budget, never);
  CHECK(whisper_internals::compute_spectrogram(*upstream.context, *upstream.state, noise(40000), 1));
  CHECK(whisper_internals::encode_window(*upstream.context, *upstream.state, 0, 1));
  const auto prompt = whisper_internals::decoder_prompt(*upstream.context, {}, "en", false, false);
  const auto extended = [&](const std::vector<Extension>& extensions, bool beside_known) {
    const auto position = static_cast<int>(prompt.tokens.size() + extensions.front().at);
    std::vector<std::vector<float>> copies;
    for (const auto row : whisper_internals::decode_extensions(*upstream.context, *upstream.state, extensions,
                                                               position, 1, beside_known))
      copies.emplace_back(row.begin(), row.end());
    return copies;
  };
  const auto alone = [&](const std::vector<int32_t>& text) {
    whisper_internals::decode_prompt(*upstream.context, *upstream.state, prompt, 1);
    std::vector<float> last;
    for (size_t i = 0; i < text.size(); ++i)
      last = extended({{0, text[i], i}}, false).front();
    return last;
  };
  const auto are_close = [](const std::vector<float>& a, const std::vector<float>& b) {
    return std::ranges::equal(a, b, [](float x, float y) { return std::abs(x - y) < 1e-3F; });
  };
  alone({1, 2, 3, 4, 5}); // is known
  auto rows = extended({{0, 7, 2}, {0, 8, 2}}, true);
  rows = extended({{2, 9, 3}, {0, 11, 3}, {1, 9, 3}}, true);
  rows = extended({{3, 12, 4}, {0, 12, 4}, {2, 12, 4}}, true);
  CHECK(are_close(rows[0], alone({1, 2, 7, 9, 12})));
  CHECK(are_close(rows[1], alone({1, 2, 3, 4, 12})));
  CHECK(are_close(rows[2], alone({1, 2, 3, 11, 12})));
  CHECK(!are_close(rows[0], rows[1]) && !are_close(rows[1], rows[2]));
}

TEST("whisper seams: only what was decoded as it is aligned is not decoded again") {
  const auto model = load_synthetic(1);
  const auto kept = [&](bool times, int beams, const std::string& prompt) {
    auto options = short_answer(true);
    options.times = times;
    options.beams = beams;
    options.prompt = prompt;
    const auto counts =
        counted_during([&] { CHECK(!model->transcribe(noise(80000), options, CancelToken()).empty()); });
    CHECK(counts.alignments == 1);
    return counts.tokens_aligned_as_decoded;
  };
  CHECK(kept(false, 1, "") >= 12);
  CHECK(kept(true, 1, "") == 0);
  CHECK(kept(false, 3, "") == 0);
  CHECK(kept(false, 1, "x  ") == 0);
}

TEST("whisper seams: a decoder that fails is a failure and not the end") {
  const Upstream upstream;
  ThreadBudget budget(1);
  const CancelToken never;
  const auto samples = noise(40000);
  const CallScope scope(*upstream.state, budget, never);
  CHECK(whisper_internals::compute_spectrogram(*upstream.context, *upstream.state, samples, 1));
  CHECK(whisper_internals::encode_window(*upstream.context, *upstream.state, 0, 1));
  const auto prompt = whisper_internals::decoder_prompt(*upstream.context, {}, "en", false, true);
  whisper_internals::decode_prompt(*upstream.context, *upstream.state, prompt, 1);
  // As a decoder without memory would, it stops.
  whisper_internals::set_graph_abort(
      *upstream.state, [](void*) { return true; }, nullptr);
  const auto decode = [&] {
    whisper_internals::decode_prompt(*upstream.context, *upstream.state, prompt, 1);
  };
  CHECK(failure_of(decode) == StatusCode::inference_failed);
  const auto align = [&] {
    whisper_internals::align_text(*upstream.context, *upstream.state, std::vector<int32_t>{1, 2}, "en", false,
                                  100, 1);
  };
  CHECK(failure_of(align) == StatusCode::inference_failed);
}

TEST("whisper seams: graphs are computed with the threads of the call") {
  for (const int threads : {1, 3}) {
    const auto model = load_synthetic(1, threads);
    const auto counts =
        counted_during([&] { model->transcribe(noise(40000), short_answer(), CancelToken()); });
    CHECK(counts.graphs > 5 && counts.graphs_skipped == 0);
    CHECK(counts.threads == threads);
  }
}

TEST("whisper seams: attention sees the positions of the audio and no others") {
  const auto model = load_synthetic(1);
  const auto transcribe = [&] { return model->transcribe(noise(40000), short_answer(), CancelToken()); };
  const auto first = transcribe();
  // A longer call leaves values behind the 300 positions that are not zero, and a fault would attend to them
  // up to the 512th.
  model->transcribe(noise(kMaxChunkSamples), english(), CancelToken());
  const auto counts = counted_during([&] { CHECK(transcribe() == first); });
  // The encoder, the keys and values, and the decoder at each token take the exact positions.
  CHECK(counts.exact_positions >= 3);
}

TEST("whisper seams: the graphs of the audio share their memory") {
  const Upstream upstream;
  const auto graphs = whisper_internals::audio_graphs(*upstream.state);
  CHECK(graphs[0] != nullptr && graphs[0] == graphs[1] && graphs[1] == graphs[2]);
}

TEST("whisper seams: a prompt has logits from the start of the transcript on") {
  const auto model = load_synthetic(1);
  auto options = short_answer();
  const auto shortened = [&] {
    return counted_during([&] { model->transcribe(noise(40000), options, CancelToken()); }).shortened_logits;
  };
  CHECK(shortened() == 0);
  options.prompt = "x  ";
  CHECK(shortened() == 1);
}

#ifdef __linux__
TEST("whisper seams: the cache for texts holds what a call needs, and nothing after it") {
  const Upstream upstream;
  const auto held = [&] {
    const auto texts = whisper_internals::text_cache(*upstream.state);
    return static_cast<double>(resident_pages(texts.data(), texts.size())) * 4096 /
           static_cast<double>(texts.size());
  };
  CHECK(held() < 0.1);
  {
    ThreadBudget budget(1);
    const CancelToken never;
    const CallScope scope(*upstream.state, budget, never);
    CHECK(whisper_internals::compute_spectrogram(*upstream.context, *upstream.state, noise(40000), 1));
    CHECK(whisper_internals::encode_window(*upstream.context, *upstream.state, 0, 1));
    whisper_internals::decode_prompt(
        *upstream.context, *upstream.state,
        whisper_internals::decoder_prompt(*upstream.context, {}, "en", false, true), 1);
    CHECK(held() > 0 && held() < 0.5);
  }
  CHECK(held() < 0.1);
}
#endif

TEST("whisper: what the cache for texts may grow by is known before") {
  const Upstream upstream;
  const auto before = whisper_internals::memory_bytes(*upstream.state);
  const auto growth = whisper_internals::text_cache_growth(*upstream.context, *upstream.state);
  CHECK(growth > 0);
  const int half = whisper_n_text_ctx(upstream.context.get()) / 2;
  const auto prompt =
      whisper_internals::decoder_prompt(*upstream.context, std::vector<int32_t>(1000, 1), "en", false, true);
  whisper_internals::reserve_tokens(*upstream.context, *upstream.state,
                                    static_cast<int>(prompt.tokens.size()) + (1 + kMaxBeams) * half);
  CHECK(whisper_internals::memory_bytes(*upstream.state) == before + growth);
  CHECK(whisper_internals::text_cache_growth(*upstream.context, *upstream.state) == 0);
}

TEST("whisper seams: the views of a model share its vocabulary") {
  const Upstream upstream;
  const std::shared_ptr<const whisper_context> whole(upstream.context.get(), [](const whisper_context*) {});
  const auto view = whisper_internals::view_of(whole, whisper_context_default_params());
  CHECK(&whisper_internals::token_bytes(*view, 0) == &whisper_internals::token_bytes(*whole, 0));
}

TEST("whisper seams: weights and caches lie in large pages") {
  std::unique_ptr<Backend> model;
  const auto counts = counted_during([&] { model = load_synthetic(1); });
  CHECK(counts.weights_in_large_pages >= 1);
  // The caches are those of the decoder and of the audio, and the encoder's padding.
  CHECK(counts.caches_in_large_pages == 3);
}

TEST("whisper seams: a cancelled graph stops between two operations") {
  const Upstream upstream;
  ThreadBudget budget(1);
  CancelToken cancel;
  const auto samples = noise(40000);
  const CallScope scope(*upstream.state, budget, cancel);
  CHECK(whisper_pcm_to_mel_with_state(upstream.context.get(), upstream.state.get(), samples.data(),
                                      static_cast<int>(samples.size()), 1) == 0);
  // This function checks no callback of its own, so only the graph can notice.
  const auto encode = [&] {
    return whisper_encode_with_state(upstream.context.get(), upstream.state.get(), 0, 1);
  };
  CHECK(encode() == 0);
  cancel.cancel();
  CHECK(encode() != 0);
  whisper_internals::set_graph_abort(*upstream.state, nullptr, nullptr);
  CHECK(encode() == 0);
}

TEST("whisper seams: sampling begins with the same random numbers in every call") {
  const auto model = load_synthetic(1);
  auto options = short_answer();
  options.temperature = 1;
  options.audio_context = 100;
  // The first of five decoders is the one that is not seeded, and it is the chosen one only now and then.
  for (size_t samples = 16000; samples < 24000; samples += 1000) {
    const auto sample = [&] { return model->transcribe(noise(samples), options, CancelToken()); };
    const auto first = sample();
    CHECK(sample() == first);
  }
}

TEST("whisper seams: audio that a detection has encoded is not encoded again, and only that audio") {
  const auto model = load_synthetic(2);
  const auto samples = noise(90000);
  for (const bool words : {false, true}) {
    auto options = english();
    options.words = words;
    options.audio_context = 400;
    auto again = options;
    again.again = true;
    const auto skipped_by = [&](std::span<const float> heard, const ChunkOptions& with) {
      return counted_during([&] { model->transcribe(heard, with, CancelToken()); }).graphs_skipped;
    };
    const auto plain = model->transcribe(samples, options, CancelToken());
    model->detect_language(samples, {400}, CancelToken());
    const auto counts =
        counted_during([&] { CHECK(model->transcribe(samples, again, CancelToken()) == plain); });
    CHECK(counts.graphs_skipped == 3 && counts.spectrograms_skipped == 1);
    CHECK(skipped_by(samples, again) == 3);   // for another attempt, too
    CHECK(skipped_by(samples, options) == 0); // another request, which happens to have the same audio

    model->detect_language(samples, {400}, CancelToken());
    auto other = samples;
    other.back() += 0.1F;
    CHECK(skipped_by(other, again) == 0);
    model->detect_language(samples, {401}, CancelToken());
    CHECK(skipped_by(samples, again) == 0);
    CHECK(model->transcribe(samples, again, CancelToken()) == plain);
  }
}

TEST("whisper seams: the language of each part is heard in what is encoded once, in one step") {
  const auto model = load_synthetic(2);
  const auto samples = noise(90000);
  using Parts = std::vector<DetectionOptions::Part>;
  const auto heard = [&](const Parts& parts) {
    std::vector<std::map<std::string, float>> result;
    for (const auto& languages : model->detect_language(samples, {400, parts}, CancelToken()))
      for (auto& of_one = result.emplace_back(); const auto& [language, probability] : languages)
        of_one[language] = probability;
    return result;
  };
  const auto distance = [](const auto& a, const auto& b) {
    float sum = 0;
    for (const auto& [language, probability] : a)
      sum += std::abs(probability - b.at(language));
    return sum;
  };
  const auto whole = heard({}).front();
  std::vector<std::map<std::string, float>> all;
  const auto counts = counted_during([&] { all = heard({{0, 1000}, {1000, 2500}, {0, 5625}}); });
  CHECK(all.size() == 4 && counts.spectrograms == 1 && counts.prompts == 1);
  CHECK(distance(all[0], whole) < 0.01F);
  CHECK(distance(all[1], whole) > 1e-3F && distance(all[1], all[2]) > 1e-3F);
  // A part is heard as if it were the only one.
  CHECK(distance(heard({{1000, 2500}})[1], all[2]) < 1e-4F);
  CHECK(heard({}).front() == whole); // and the parts leave nothing behind
  // No part is empty, wherever it lies.
  for (const auto& [start, end] : {std::pair{0, 1}, {5600, 5640}, {29000, 30000}})
    CHECK(std::isfinite(heard({{start, end}})[1].begin()->second));
  CHECK(heard(Parts(DetectionOptions::kMostParts, {0, 1000})).size() == 1 + DetectionOptions::kMostParts);
}

TEST("whisper seams: audio whose text is a loop is not encoded again for another attempt") {
  const auto path = temporary("loop.bin");
  write_file(path, synthetic_whisper(1, {.places = 0}));
  const auto model = load_whisper({"whisper", path, "cpu", 1}, CancelToken());
  const auto samples = noise(90000);
  auto options = english();
  options.audio_context = 400;
  options.max_tokens = 100;
  const auto hear = [&] {
    CHECK(failure_of([&] { model->transcribe(samples, options, CancelToken()); }) == StatusCode::repetition);
  };
  CHECK(counted_during(hear).graphs_skipped == 0);
  options.again = true;
  const auto counts = counted_during(hear);
  CHECK(counts.graphs_skipped == 3 && counts.spectrograms_skipped == 1);
}
