#include "harness.h"

#include "backends/sensevoice/sensevoice_ctc.h"
#include "models/sentencepiece.h"

#include <cmath>

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr int kBlank = 0;

SenseVoiceVocabulary vocabulary() {
  SenseVoiceVocabulary result;
  result.pieces = {"<unk>",
                   "<|zh|>",
                   "<|en|>",
                   "<|nospeech|>",
                   "<|HAPPY|>",
                   "<|BGM|>",
                   "<|withitn|>",
                   "\xE2\x96\x81"
                   "hi",
                   "你",
                   "<|Laughter|>"};
  for (const auto& piece : result.pieces)
    result.spoken.push_back(piece != "<unk>" && tag_name(piece).empty());
  result.no_speech = 3;
  return result;
}

SenseVoiceShape shape() {
  SenseVoiceShape result;
  result.stride = 6;
  result.languages = {{"zh", 3, 1}, {"en", 4, 2}};
  return result;
}

// Each position gives its token a probability of 0.9, and the other tokens share the rest.
Segment read(const std::vector<int>& best, int64_t limit_ms = 10000) {
  const auto words = vocabulary();
  const auto logits = [&](int token) {
    std::vector<float> row(words.pieces.size(), std::log(0.1F / static_cast<float>(words.pieces.size() - 1)));
    row[static_cast<size_t>(token)] = std::log(0.9F);
    return row;
  };
  std::vector<SenseVoicePeak> peaks;
  for (const int token : best)
    peaks.push_back(peak_of(logits(token), kBlank));
  return read_sensevoice(peaks, logits(best.front()), shape(), words, limit_ms);
}

} // namespace

TEST("sensevoice ctc: repeats count once, blanks are dropped, and tags are told apart") {
  const auto segment = read({1, 4, 5, 6, kBlank, 7, 7, kBlank, 7, 8, 9, 8});
  std::string text;
  for (const auto& token : segment.tokens)
    text += token.bytes;
  CHECK(text == " hi hi你你");
  CHECK(segment.language == "zh");
  CHECK(std::abs(segment.language_probability - 0.9F) < 1e-5F);
  CHECK(segment.emotion == "HAPPY");
  CHECK(segment.event == "BGM");
  CHECK(std::abs(segment.no_speech_prob - 0.1F / 9) < 1e-5F);
  CHECK(std::abs(segment.tokens[0].logprob - std::log(0.9F)) < 1e-5F);
}

TEST("sensevoice ctc: a token begins half a frame early and ends where the next one begins") {
  const auto segment =
      read({1, 4, 5, 6, 7, kBlank, 8, 8, kBlank, kBlank, kBlank, kBlank, kBlank, kBlank, 7}, 700);
  const std::vector<std::pair<int64_t, int64_t>> expected{{0, 90}, {90, 490}, {570, 700}};
  CHECK(segment.tokens.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(segment.tokens[i].start_ms == expected[i].first);
    CHECK(segment.tokens[i].end_ms == expected[i].second);
  }
  CHECK(segment.start_ms == 0);
  CHECK(segment.end_ms == 700);
}

TEST("sensevoice ctc: a token held for long lasts that long") {
  const auto segment = read({1, 4, 5, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7});
  CHECK(segment.tokens.size() == 1);
  CHECK(segment.tokens[0].end_ms == 570);
}

TEST("sensevoice ctc: audio without speech gives no words") {
  CHECK(read({3, 4, 5, 6, 7, 8}).tokens.empty());
  CHECK(read({1, 4, 5, 6, kBlank, 9}).tokens.empty());
}

TEST("sensevoice ctc: values that are not numbers are a failure, not a text") {
  CHECK(failure_of([] { peak_of(std::vector<float>(10, NAN), kBlank); }) == StatusCode::inference_failed);
}

TEST("sensevoice ctc: one value that is no number is a failure too, where it is not the best one") {
  std::vector<float> row(10, 0);
  row[4] = 5;
  row[8] = NAN;
  CHECK(failure_of([&] { peak_of(row, kBlank); }) == StatusCode::inference_failed);
  // Where the first position's best token is blank, its sum is not needed until the probability of silence
  // is.
  CHECK(failure_of([&] {
          read_sensevoice({{kBlank, 0}}, row, shape(), vocabulary(), 1000);
        }) == StatusCode::inference_failed);
  row.assign(10, 5);
  row[2] = NAN;
  CHECK(failure_of([&] { rank_languages(row, shape()); }) == StatusCode::inference_failed);
}

TEST("sensevoice ctc: languages are sorted by probability") {
  std::vector<float> row(10, 5);
  row[1] = 0;
  row[2] = std::log(3.0F);
  const auto ranked = rank_languages(row, shape());
  CHECK(ranked[0].language == "en" && std::abs(ranked[0].probability - 0.75F) < 1e-5F);
  CHECK(ranked[1].language == "zh" && std::abs(ranked[1].probability - 0.25F) < 1e-5F);
}
