// Any scores and any vocabulary, as a broken or foreign model gives them, on their way to text: what the
// SenseVoice decoder makes of them, the spelling of pieces, the tokens of a prompt, and probabilities.
#include "target.h"

#include "backends/sensevoice/sensevoice_ctc.h"
#include "backends/whisper/whisper_logits.h"
#include "backends/whisper/whisper_prompt.h"
#include "models/sentencepiece.h"
#include "status.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace voxgate::fuzz {
namespace {

constexpr size_t kMaxPieces = 32;
constexpr int kMaxPositions = 64;
constexpr std::string_view kNeeded[] = {"<|zh|>", "<|en|>", "<|yue|>", "<|ja|>", "<|ko|>", "<|nospeech|>"};

struct Model {
  SenseVoiceShape shape;
  SenseVoiceVocabulary vocabulary;
};

// A vocabulary that a file may have: read_sensevoice_vocabulary requires these pieces, and the rest is free.
Model read_model(Reader& input) {
  Model model;
  auto& [shape, vocabulary] = model;
  for (const auto piece : kNeeded)
    vocabulary.pieces.emplace_back(piece);
  for (size_t count = input.number<uint8_t>() % kMaxPieces; count > 0; --count) {
    const auto bytes = input.take(input.number<uint8_t>() % 16);
    vocabulary.pieces.emplace_back(bytes.begin(), bytes.end());
  }
  const auto size = static_cast<int32_t>(vocabulary.pieces.size());
  for (const auto& piece : vocabulary.pieces)
    vocabulary.spoken.push_back(input.number<uint8_t>() % 4 != 0 && tag_name(piece).empty());
  vocabulary.no_speech = 5;
  vocabulary.blank = input.number<uint8_t>() % size;
  shape.vocabulary = size;
  shape.stride = 1 + input.number<uint8_t>() % 15;
  for (int32_t i = 0; i < 5; ++i)
    shape.languages.push_back({std::string(tag_name(kNeeded[i])), i, i});
  return model;
}

// A float that a half can hold is written in two bytes, so that one byte of an input changes much.
float score(Reader& input) {
  const auto value = input.number<int8_t>();
  switch (value) {
  case 127:
    return INFINITY;
  case -128:
    return -INFINITY;
  case 126:
    return NAN;
  case 125:
    return input.number<float>();
  default:
    return static_cast<float>(value) / 4;
  }
}

std::vector<float> scores(Reader& input, size_t count) {
  std::vector<float> row(count);
  for (auto& value : row)
    value = score(input);
  return row;
}

template <typename Call> void may_fail(Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    REQUIRE(failure.status().code == StatusCode::inference_failed);
  }
}

void decode(const Model& model, Reader& input) {
  const int positions = 1 + input.number<uint8_t>() % kMaxPositions;
  const int64_t limit_ms = input.number<uint16_t>();
  const auto size = model.vocabulary.pieces.size();
  may_fail([&] {
    const auto first = scores(input, size);
    std::vector<SenseVoicePeak> peaks{peak_of(first, model.vocabulary.blank)};
    while (static_cast<int>(peaks.size()) < positions)
      peaks.push_back(peak_of(scores(input, size), model.vocabulary.blank));
    const auto segment = read_sensevoice(peaks, first, model.shape, model.vocabulary, limit_ms);
    int64_t last = 0;
    for (const auto& token : segment.tokens) {
      REQUIRE(token.id >= 0 && static_cast<size_t>(token.id) < size);
      REQUIRE(token.start_ms >= last && token.end_ms >= token.start_ms && token.end_ms <= limit_ms);
      REQUIRE(std::isfinite(token.logprob) && token.logprob <= 1e-3F);
      last = token.start_ms;
    }
    REQUIRE(segment.tokens.empty() || std::isfinite(segment.no_speech_prob));
  });
  may_fail([&] {
    const auto ranked = rank_languages(scores(input, size), model.shape);
    REQUIRE(ranked.size() == 5);
    for (const auto& guess : ranked)
      REQUIRE(guess.probability >= 0 && guess.probability <= 1);
  });
}

void spell(const Model& model, Reader& input) {
  std::map<std::string, int32_t, std::less<>> known;
  size_t longest = 0;
  for (const auto& piece : model.vocabulary.pieces) {
    REQUIRE(piece_text(piece).size() <= piece.size());
    known.emplace(piece, static_cast<int32_t>(known.size()));
    longest = std::max(longest, piece.size());
  }
  const auto bytes = input.take(input.number<uint16_t>() % 4097);
  const std::string prompt(bytes.begin(), bytes.end());
  const auto tokens = tokenize_prompt(prompt, longest, [&](std::string_view piece) {
    REQUIRE(!piece.empty() && piece.size() <= longest);
    const auto found = known.find(piece);
    return found == known.end() ? -1 : found->second;
  });
  REQUIRE(tokens.size() <= prompt.size());
}

void normalize(Reader& input) {
  const auto logits = scores(input, 1 + input.number<uint8_t>());
  std::vector<float> logprobs(logits.size());
  log_softmax(logits, logprobs);
  softmax_at(logits, input.number<uint8_t>() % logits.size());
}

void run(Bytes bytes) {
  Reader input(bytes);
  const auto model = read_model(input);
  spell(model, input);
  normalize(input);
  decode(model, input);
}

std::vector<std::string> seeds() {
  // Three pieces, all spoken, blank 0, frames of 60 ms; no prompt, one score; positions of 8 s.
  std::string start("\x03\x04\xE2\x96\x81"
                    "a\x01"
                    "b\x03"
                    "c d",
                    12);
  start += std::string(9, '\x01') + std::string("\x00\x05", 2);
  start += std::string("\x05\x00 a\xE2\x96\x81", 7) + std::string("\x00\x04", 2);
  start += std::string("\x0C\x40\x1F", 3);
  std::vector<std::string> made;
  for (const char value : {'\x00', '\x10', '\x7F', '\x7E', '\x7D', '\x80'}) {
    std::string seed = start;
    for (size_t i = 0; i < 108; ++i)
      seed += i % 10 == 0 ? value : static_cast<char>(i % 7);
    made.push_back(seed);
  }
  return made;
}

} // namespace

extern const Target kText{"text", run, seeds};

} // namespace voxgate::fuzz
