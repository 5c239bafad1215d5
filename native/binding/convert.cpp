#include "binding/convert.h"

#include "binding/errors.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace voxgate {
namespace {

constexpr int kMaxThreads = 512; // ggml's own limit

double read_number(Napi::Object object, const std::string& name, double low, double high,
                   const char* expected) {
  const Napi::Value value = object.Get(name);
  if (!value.IsNumber())
    throw argument_error(object.Env(), expected, name, value);
  const double number = value.As<Napi::Number>().DoubleValue();
  if (!(number >= low && number <= high))
    throw argument_error(object.Env(), expected, name, value);
  return number;
}

// An array of at most `most` items; none where the member is missing.
template <typename Item, typename Read>
std::vector<Item> read_list(Napi::Object object, const std::string& name, size_t most,
                            const std::string& expected, Read read) {
  const Napi::Value value = object.Get(name);
  std::vector<Item> items;
  if (value.IsUndefined())
    return items;
  if (!value.IsArray() || value.As<Napi::Array>().Length() > most)
    throw argument_error(object.Env(), expected, name, value);
  const auto array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i)
    items.push_back(read(array[i]));
  return items;
}

Napi::Value bytes_to_js(Napi::Env env, const std::string& bytes) {
  auto array = Napi::Uint8Array::New(env, bytes.size());
  if (!bytes.empty())
    std::memcpy(array.Data(), bytes.data(), bytes.size());
  return array;
}

template <typename String> Napi::Array strings_to_js(Napi::Env env, const std::vector<String>& strings) {
  auto array = Napi::Array::New(env, strings.size());
  for (uint32_t i = 0; i < strings.size(); ++i)
    array.Set(i, Napi::String::New(env, strings[i].data(), strings[i].size()));
  return array;
}

} // namespace

Napi::Object read_object(const Napi::CallbackInfo& info, size_t index, const std::string& name) {
  if (!info[index].IsObject())
    throw argument_error(info.Env(), "an object", name, info[index]);
  return info[index].As<Napi::Object>();
}

std::string read_string(Napi::Object object, const std::string& name) {
  const Napi::Value value = object.Get(name);
  if (!value.IsString())
    throw argument_error(object.Env(), "a string", name, value);
  return value.As<Napi::String>().Utf8Value();
}

std::string read_text(Napi::Object object, const std::string& name) {
  return object.Get(name).IsUndefined() ? "" : read_string(object, name);
}

std::vector<std::string> read_texts(Napi::Object object, const std::string& name, size_t most, size_t bytes) {
  const auto expected = "up to " + std::to_string(most) + " strings of " + std::to_string(bytes) + " bytes";
  return read_list<std::string>(object, name, most, expected, [&](Napi::Value each) {
    std::string text = each.IsString() ? each.As<Napi::String>().Utf8Value() : "";
    if (!each.IsString() || text.size() > bytes)
      throw argument_error(object.Env(), expected, name, each);
    return text;
  });
}

std::vector<DetectionOptions::Part> read_parts(Napi::Object object, const std::string& name) {
  using Part = DetectionOptions::Part;
  constexpr int kMostMs = kMaxChunkSamples / (kSampleRate / 1000);
  constexpr size_t kMost = DetectionOptions::kMostParts;
  const auto expected = "up to " + std::to_string(kMost) + " parts";
  return read_list<Part>(object, name, kMost, expected, [&](Napi::Value each) {
    if (!each.IsObject())
      throw argument_error(object.Env(), "an object", name, each);
    const auto part = each.As<Napi::Object>();
    return Part{read_integer(part, "startMs", 0, kMostMs), read_integer(part, "endMs", 0, kMostMs)};
  });
}

bool read_boolean(Napi::Object object, const std::string& name) {
  const Napi::Value value = object.Get(name);
  if (!value.IsBoolean())
    throw argument_error(object.Env(), "a boolean", name, value);
  return value.As<Napi::Boolean>().Value();
}

int read_integer(Napi::Object object, const std::string& name, int low, int high) {
  const auto expected = "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  const double number = read_number(object, name, low, high, expected.c_str());
  if (number != std::floor(number))
    throw argument_error(object.Env(), expected, name, object.Get(name));
  return static_cast<int>(number);
}

std::vector<float> read_samples(const Napi::CallbackInfo& info, size_t index, size_t max_samples) {
  const Napi::Value value = info[index];
  if (!value.IsTypedArray() || value.As<Napi::TypedArray>().TypedArrayType() != napi_float32_array)
    throw argument_error(info.Env(), "a Float32Array", "samples", value);
  const auto array = value.As<Napi::Float32Array>();
  const size_t length = array.ElementLength(); // 0 when its buffer was transferred away
  if (length == 0 || length > max_samples)
    throw argument_error(info.Env(), "1 to " + std::to_string(max_samples) + " samples", "samples.length",
                         Napi::Number::New(info.Env(), static_cast<double>(length)));
  std::vector<float> samples(array.Data(), array.Data() + length);
  std::ranges::replace_if(
      samples, [](float sample) { return !std::isfinite(sample); }, 0.0F);
  return samples;
}

int read_threads(Napi::Object options) {
  return read_integer(options, "threads", 1, kMaxThreads);
}

LoadOptions read_load_options(Napi::Object options) {
  LoadOptions result{read_string(options, "family"), read_string(options, "path"),
                     read_string(options, "device"), read_threads(options)};
  result.threads = threads_on(result.device, result.threads);
  return result;
}

ChunkOptions read_chunk_options(Napi::Object options, const ModelInfo& model) {
  ChunkOptions result;
  result.language = read_string(options, "language");
  const bool to_be_found = result.language.empty() && model.finds_language;
  if (!to_be_found && std::ranges::find(model.languages, result.language) == model.languages.end())
    throw argument_error(options.Env(), "a language of the model", "language", options.Get("language"));
  result.translate = read_boolean(options, "translate");
  result.prompt = read_string(options, "prompt");
  result.temperature = static_cast<float>(read_number(options, "temperature", 0, 1, "a number from 0 to 1"));
  result.audio_context = read_integer(options, "audioContext", 0, model.audio_context);
  result.max_tokens = read_integer(options, "maxTokens", 0, model.text_context);
  result.beams = read_integer(options, "beams", 1, kMaxBeams);
  if (options.Get("doubt").IsObject()) {
    const auto doubt = options.Get("doubt").As<Napi::Object>();
    const auto logprob = [&](const char* name) {
      return static_cast<float>(read_number(doubt, name, -100, 0, "a number from -100 to 0"));
    };
    result.doubt = {logprob("least"), logprob("sure"), read_integer(doubt, "beams", 2, kMaxBeams)};
  }
  result.times = read_boolean(options, "times");
  result.words = read_boolean(options, "words");
  result.again = read_boolean(options, "again");
  result.text = read_text(options, "text");
  result.keywords = read_texts(options, "keywords", kMaxKeywords, kMaxKeywordBytes);
  result.normalize_text =
      options.Get("normalizeText").IsUndefined() || read_boolean(options, "normalizeText");
  return result;
}

Napi::Object to_js(Napi::Env env, const ModelInfo& info) {
  auto object = Napi::Object::New(env);
  object.Set("family", info.family);
  object.Set("languages", strings_to_js(env, info.languages));
  object.Set("multilingual", info.multilingual);
  object.Set("audioContext", info.audio_context);
  object.Set("textContext", info.text_context);
  object.Set("lanes", info.lanes);
  object.Set("memoryBytes", static_cast<double>(info.memory_bytes));
  return object;
}

Napi::Object to_js(Napi::Env env, const Token& token) {
  auto object = Napi::Object::New(env);
  object.Set("id", token.id);
  object.Set("bytes", bytes_to_js(env, token.bytes));
  object.Set("logprob", token.logprob);
  object.Set("startMs", static_cast<double>(token.start_ms));
  object.Set("endMs", static_cast<double>(token.end_ms));
  return object;
}

Napi::Object to_js(Napi::Env env, const Segment& segment) {
  auto object = Napi::Object::New(env);
  object.Set("startMs", static_cast<double>(segment.start_ms));
  object.Set("endMs", static_cast<double>(segment.end_ms));
  object.Set("tokens", to_js_array(env, segment.tokens));
  object.Set("noSpeechProb", segment.no_speech_prob);
  object.Set("endLogprob", segment.end_logprob);
  if (!segment.language.empty()) {
    object.Set("language", segment.language);
    object.Set("languageProbability", segment.language_probability);
  }
  if (!segment.emotion.empty())
    object.Set("emotion", segment.emotion);
  if (!segment.event.empty())
    object.Set("event", segment.event);
  return object;
}

Napi::Object to_js(Napi::Env env, const Languages& ranked) {
  auto object = Napi::Object::New(env);
  auto probabilities = Napi::Object::New(env);
  for (const auto& guess : ranked)
    probabilities.Set(guess.language, guess.probability);
  object.Set("language", ranked.front().language);
  object.Set("probability", ranked.front().probability);
  object.Set("probabilities", probabilities);
  return object;
}

Napi::Object to_js(Napi::Env env, const ComputeDevice& device) {
  auto object = Napi::Object::New(env);
  object.Set("name", device.name);
  object.Set("gpu", device.gpu);
  object.Set("memoryBytes", static_cast<double>(device.memory_bytes));
  return object;
}

Napi::Object to_js(Napi::Env env, const EngineInfo& info) {
  auto object = Napi::Object::New(env);
  object.Set("whisperVersion", info.whisper_version);
  object.Set("ggmlVersion", info.ggml_version);
  object.Set("devices", to_js_array(env, info.devices));
  object.Set("cpuLevel", info.cpu_level);
  object.Set("cpuFeatures", strings_to_js(env, info.cpu_features));
  object.Set("cudaArchitectures", info.cuda_architectures);
  object.Set("families", strings_to_js(env, family_names()));
  return object;
}

Napi::Float32Array to_js(Napi::Env env, const std::vector<float>& samples) {
  auto array = Napi::Float32Array::New(env, samples.size());
  std::ranges::copy(samples, array.Data());
  return array;
}

Napi::Number to_js(Napi::Env env, float number) {
  return Napi::Number::New(env, number);
}

} // namespace voxgate
