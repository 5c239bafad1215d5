#include "synthetic_whisper.h"

#include "models/ggml_file.h"

#include <cmath>
#include <random>
#include <vector>

namespace voxgate::test {
namespace {

constexpr int kLayers = 4; // whisper.cpp knows no fewer
constexpr int kVocab = 51865;
constexpr int kText = 50257; // tokens of text; those behind them are timestamps and the like

class Writer {
 public:
  Writer(unsigned seed, int32_t width) : random_(seed), width_(width) {}

  template <typename T> void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) { bytes_ += text; }

  // The shape is ggml's, with the fastest dimension first. One-dimensional tensors and biases are f32, as
  // converters write them.
  void tensor(const std::string& name, const std::vector<int32_t>& shape, bool f32, float scale) {
    put(static_cast<int32_t>(shape.size()));
    put(static_cast<int32_t>(name.size()));
    put(static_cast<int32_t>(f32 ? 0 : 1));
    size_t elements = 1;
    for (const int32_t extent : shape) {
      put(extent);
      elements *= static_cast<size_t>(extent);
    }
    text(name);
    values(elements, f32, scale);
  }
  // Words are louder than timestamps and the other special tokens: otherwise the many timestamps together
  // outweigh every word, and a decoding ends after two of them.
  void embedding(const std::string& name) {
    put(int32_t{2});
    put(static_cast<int32_t>(name.size()));
    put(int32_t{1});
    put(width_);
    put(int32_t{kVocab});
    text(name);
    const auto width = static_cast<size_t>(width_);
    values(size_t{kText} * width, false, 1);
    values(size_t{kVocab - kText} * width, false, 0.5F);
  }
  void norm(const std::string& name) {
    tensor(name + ".weight", {width_}, true, 1);
    tensor(name + ".bias", {width_}, true, 0.1F);
  }
  void linear(const std::string& name, int in, int out, bool bias = true) {
    tensor(name + ".weight", {in, out}, false, 1.7F / std::sqrt(static_cast<float>(in)));
    if (bias)
      tensor(name + ".bias", {out}, true, 0.1F);
  }
  void attention(const std::string& name) {
    linear(name + ".query", width_, width_);
    linear(name + ".key", width_, width_, false);
    linear(name + ".value", width_, width_);
    linear(name + ".out", width_, width_);
  }

  std::string take() { return std::move(bytes_); }

 private:
  void values(size_t count, bool f32, float scale) {
    std::uniform_real_distribution<float> value(-scale, scale);
    for (size_t i = 0; i < count; ++i) {
      if (f32)
        put(value(random_));
      else
        put(half(value(random_)));
    }
  }

  // The conversion is exact for normal halves, as these weights are; any other value becomes zero.
  static uint16_t half(float value) {
    uint32_t bits = 0;
    static_assert(sizeof bits == sizeof value);
    __builtin_memcpy(&bits, &value, sizeof bits);
    const int exponent = static_cast<int>(bits >> 23 & 0xFF) - 112;
    if (exponent <= 0)
      return 0;
    return static_cast<uint16_t>((bits >> 16 & 0x8000) | static_cast<uint32_t>(exponent) << 10 |
                                 (bits >> 13 & 0x3FF));
  }

  std::mt19937 random_;
  int32_t width_;
  std::string bytes_;
};

void put_vocabulary(Writer& out, int32_t words) {
  out.put(words);
  for (int i = 0; i < words; ++i) {
    std::string word = i == 220 || i % 3 == 0 ? " " : "";
    if (i != 220)
      word.append("w").append(std::to_string(i));
    out.put(static_cast<uint32_t>(word.size()));
    out.text(word);
  }
}

} // namespace

std::string synthetic_whisper(unsigned seed, const SyntheticShape& shape) {
  const int32_t width = shape.width;
  Writer out(seed, width);
  out.put(kGgmlMagic);
  out.put(WhisperHparams{kVocab, shape.audio_context, width, 2, kLayers, shape.text_context, width, 2,
                         kLayers, 80, 1});
  out.put(int32_t{80});
  out.put(int32_t{201});
  for (int mel = 0; mel < 80; ++mel) {
    for (int bin = 0; bin < 201; ++bin)
      out.put(bin / 2 == mel ? 0.02F : 0.0F);
  }
  put_vocabulary(out, shape.words);

  out.tensor("encoder.positional_embedding", {width, shape.audio_context}, true, 1);
  out.tensor("encoder.conv1.weight", {3, 80, width}, false, 0.1F);
  out.tensor("encoder.conv1.bias", {1, width}, true, 0.1F);
  out.tensor("encoder.conv2.weight", {3, width, width}, false, 0.1F);
  out.tensor("encoder.conv2.bias", {1, width}, true, 0.1F);
  out.norm("encoder.ln_post");
  out.tensor("decoder.positional_embedding", {width, shape.text_context}, true, shape.places);
  out.embedding("decoder.token_embedding.weight");
  out.norm("decoder.ln");
  for (const std::string side : {"encoder", "decoder"}) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string block = side + ".blocks." + std::to_string(layer);
      out.norm(block + ".mlp_ln");
      out.linear(block + ".mlp.0", width, 4 * width);
      out.linear(block + ".mlp.2", 4 * width, width);
      out.norm(block + ".attn_ln");
      out.attention(block + ".attn");
      if (side == "decoder") {
        out.norm(block + ".cross_attn_ln");
        out.attention(block + ".cross_attn");
      }
    }
  }
  return out.take();
}

} // namespace voxgate::test
