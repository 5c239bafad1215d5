#pragma once

#include "cancel.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The one interface of a speech model, and its contract.
//
// Threads: a backend is loaded, used and destroyed on one thread, its own. Its calls never overlap, so an
// implementation needs no locks. It may start helper threads inside a call, all of which end with the call.
// The callbacks of a call run on that same thread, during the call.
//
// Lanes: a model may offer further backends on the same weights, each with a thread and working memory of its
// own, so that several chunks are decoded at once. They share only the weights, which are never written, and
// the number of threads.
//
// Ownership: spans and references are borrowed for the call only. Nothing of one call may influence the next:
// the same samples with the same options give the same segments, in every field, also after an abort.
//
// Abort: `cancel` may be set at any time by another thread. An implementation looks at it at least before
// each graph, better inside it, and leaves by throwing what CancelToken::check throws. The model must stay
// usable.
//
// Errors: throw Failure; other exceptions count as inference_failed (load_failed while loading). Nothing may
// call abort() or exit(): input is checked before it reaches a library that asserts.
//
// Audio is 16 kHz mono in -1..1 and finite. Times are milliseconds from the first sample, inside the chunk
// and never falling from token to token.

namespace voxgate {

inline constexpr int kSampleRate = 16000;
// What one window of Whisper can hold, and a bound for every backend; half a second of slack for padding.
inline constexpr size_t kMaxChunkSamples = 30 * kSampleRate + kSampleRate / 2;

struct LoadOptions {
  std::string family; // "whisper", "parakeet" ...: which kind of model the file holds
  std::string path;
  std::string device; // "cpu", "cuda", "cuda:1" ...
  int threads = 1;
};

struct ModelInfo {
  std::string family;
  std::vector<std::string> languages; // in the model's own order
  bool multilingual = false;
  bool finds_language = false; // while transcribing: ChunkOptions::language may then be empty
  int audio_context = 0;       // encoder positions of a full window; 0 where a call cannot choose them
  int text_context = 0;        // decoder positions; 0 where there is no decoder
  int lanes = 1;               // how many chunks are worth decoding at once, this backend included
  uint64_t memory_bytes = 0;
};

struct ChunkOptions {
  std::string language; // one of ModelInfo::languages; empty where the model is to find it
  bool translate = false;
  std::string prompt;
  float temperature = 0;
  int audio_context = 0; // 0 = full window
  int max_tokens = 0;    // 0 = the model's own bound
  bool words = false;
  bool itn = true; // inverse text normalization, where a model has the choice: punctuation, digits
};

struct Token {
  int32_t id = 0;
  std::string bytes; // UTF-8, maybe part of a character; empty for timestamp and control tokens
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
  // What some models say beside the words; empty for the others.
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

// Both may be empty functions. Progress is 0..1.
struct ChunkEvents {
  std::function<void(const Segment&)> segment;
  std::function<void(double)> progress;
};

// As in the ChunkOptions of the call that follows on the same samples: it then need not encode them again.
struct DetectionOptions {
  int audio_context = 0;
  bool words = false;
};

class Backend;
// Makes one more lane. May be called on any thread, also while other lanes compute or when the backend it
// came from is gone; throws Failure{closed} when all lanes are gone.
using LaneFactory = std::function<std::unique_ptr<Backend>()>;

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual const ModelInfo& info() const = 0;

  // Empty where there is one lane only (ModelInfo::lanes).
  virtual LaneFactory lane_factory() const { return {}; }

  // At least one and at most kMaxChunkSamples samples. Returns every segment, also those already emitted.
  virtual std::vector<Segment> transcribe(std::span<const float> samples, const ChunkOptions& options,
                                          const ChunkEvents& events, const CancelToken& cancel) = 0;

  // All languages of the model, most probable first; a model of one language answers with that one,
  // and one that cannot detect languages throws Failure{invalid_argument}.
  virtual std::vector<LanguageProbability> detect_language(std::span<const float> samples,
                                                           const DetectionOptions& options,
                                                           const CancelToken& cancel) = 0;
};

// Whether this build can load models of that family: "whisper", "parakeet" ...
bool has_family(std::string_view name);

// Every family of this build, sorted by name.
std::vector<std::string_view> family_names();

// Loads a model of the family that `options` names, behind the guard of gpu_guard.h. Throws
// Failure{invalid_argument}, which names the families there are, when this build does not have that one.
std::unique_ptr<Backend> load_model(const LoadOptions& options, const CancelToken& cancel);

} // namespace voxgate
