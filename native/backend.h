#pragma once

#include "cancel.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The interface of a speech model, and the rules for its implementations.
//
// Threads: a backend is loaded, used and destroyed on one thread, its own. Its calls never overlap, so an
// implementation needs no locks. It may start helper threads inside a call, but all of them must end with the
// call.
//
// Lanes: a model may offer further backends on the same weights, so that several chunks are decoded at once.
// Each has a thread and working memory of its own. They share only the number of threads and the weights,
// which are never written.
//
// Ownership: spans and references are borrowed for the call only. A call must not influence the next one: the
// same samples with the same options give the same segments, in every field, also after an abort.
//
// Abort: another thread may set `cancel` at any time. An implementation checks it at least before each graph,
// better inside it, and leaves by the exception of CancelToken::check. The model must stay usable.
//
// Errors: throw Failure. Other exceptions count as inference_failed (load_failed while loading). No code may
// call abort() or exit(), so input is checked before it reaches a library that asserts.
//
// Audio is 16 kHz mono, finite and in -1..1. Times are milliseconds from the first sample. They are inside
// the chunk and never fall from token to token.

namespace voxgate {

inline constexpr int kSampleRate = 16000;
inline constexpr int kMaxBeams = 8;
inline constexpr size_t kMaxKeywords = 300;
inline constexpr size_t kMaxKeywordBytes = 600;
// One window of Whisper (30 s) and half a second for padding; it is the limit of every backend.
inline constexpr size_t kMaxChunkSamples = 30 * kSampleRate + kSampleRate / 2;

struct LoadOptions {
  std::string family; // the architecture of the model in the file: "whisper", "parakeet" ...
  std::string path;
  std::string device; // "cpu", "cuda", "cuda:1", "vulkan:0" ...
  int threads = 1;
};

constexpr int kMaxGpuThreads = 32; // so that the eight lanes that there may be have 256

// The number of threads for each lane of a model on `device`, of `threads` that it may have. A GPU computes
// nearly everything itself, and each of its lanes has threads of its own.
inline int threads_on(std::string_view device, int threads) {
  return device == "cpu" ? threads : std::min(threads, kMaxGpuThreads);
}

struct ModelInfo {
  std::string family;
  std::vector<std::string> languages; // in the model's own order
  bool multilingual = false;
  bool finds_language = false; // true if transcribing detects it; ChunkOptions::language may then be empty
  int audio_context = 0;       // encoder positions of a full window; 0 if a call cannot choose them
  int text_context = 0;        // decoder positions; 0 if there is no decoder
  int lanes = 1;               // the number of chunks worth decoding at once, with this backend
  uint64_t memory_bytes = 0;
};

struct ChunkOptions {
  std::string language; // one of ModelInfo::languages; empty if the model has to detect it
  bool translate = false;
  std::string prompt;
  float temperature = 0;
  int audio_context = 0; // 0 means the full window
  int max_tokens = 0;    // 0 means the model's own limit
  int beams = 1;         // texts that are followed side by side at a temperature of 0; 1 is greedy
  // A greedy text whose mean log probability is from `least` on and below `sure` is in doubt: with so many
  // beams a more probable one is looked for beside it (Whisper without times). 0 beams: nothing is in doubt.
  struct Doubt {
    float least = 0;
    float sure = 0;
    int beams = 0;
  };
  Doubt doubt;
  bool times = true; // false: the decoder is told to write no times, and a segment is as long as its window
  bool words = false;
  // True for another look at the audio of the call before: what was encoded for that is used again, where it
  // is exactly the same.
  bool again = false;
  // The text that is said in the audio. The model then decodes nothing: it gives this text its times and
  // probabilities, in one segment. Empty where the model has to hear the text. A model that cannot do that
  // throws Failure{invalid_argument}, and Failure{text_too_long} where it takes no text as long.
  std::string text;
  // Words to expect, in UTF-8, for models that look for them among their tokens (keywords/). The text differs
  // from the text without them only where it has one of them.
  std::vector<std::string> keywords;
  // Inverse text normalization: punctuation and digits, if the model has the choice.
  bool normalize_text = true;
};

struct Token {
  int32_t id = 0;
  std::string bytes; // UTF-8, possibly a part of a character; empty for timestamp and control tokens
  float logprob = 0;
  int64_t start_ms = 0;
  int64_t end_ms = 0;

  bool operator==(const Token&) const = default;
};

struct Segment {
  int64_t start_ms = 0;
  int64_t end_ms = 0;
  std::vector<Token> tokens;
  float no_speech_prob = 0;
  float end_logprob = 0; // of the end behind the text, where a decoder chose to end it there
  // Some models detect these beside the words; they are empty for the others.
  std::string language;
  float language_probability = 0;
  std::string emotion;
  std::string event;

  bool operator==(const Segment&) const = default;
};

struct LanguageProbability {
  std::string language;
  float probability = 0;
};
using Languages = std::vector<LanguageProbability>; // the most probable first

struct DetectionOptions {
  // With the same value as in the ChunkOptions of the following call on the same samples, that call does not
  // encode them again.
  int audio_context = 0;
  // Parts of the samples whose languages are asked for, too, at most kMostParts of them.
  struct Part {
    int start_ms = 0;
    int end_ms = 0;
  };
  std::vector<Part> parts = {};
  static constexpr size_t kMostParts = 63;
};

class Backend;
// Makes another lane. It may be called on any thread, also while other lanes compute, and after the backend
// that gave the factory was destroyed. Throws Failure{closed} when all lanes are destroyed.
using LaneFactory = std::function<std::unique_ptr<Backend>()>;

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const ModelInfo& info() const = 0;

  // Empty if the model has only one lane (ModelInfo::lanes).
  virtual LaneFactory lane_factory() const { return {}; }

  // Takes 1 to kMaxChunkSamples samples.
  virtual std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                          const CancelToken& cancel) = 0;

  // All languages of the model, as all samples sound, and behind them as each part does. A model with one
  // language returns that one. A model that cannot detect languages throws Failure{invalid_argument}.
  virtual std::vector<Languages> detect_language(std::span<const float> samples,
                                                 const DetectionOptions& options,
                                                 const CancelToken& cancel) = 0;
};

// True if this build can load models of the family `name`: "whisper", "parakeet" ...
bool has_family(std::string_view name);

// All families of this build, sorted by name.
std::vector<std::string_view> family_names();

// Loads a model of the family in `options`, behind the guard of gpu_guard.h. Throws
// Failure{invalid_argument}, which names the families of this build, if it does not have that family.
std::unique_ptr<Backend> load_model(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate
