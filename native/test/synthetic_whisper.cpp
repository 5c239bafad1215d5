#include "synthetic_whisper.h"

#include "models/ggml_file.h"

#include <cmath>
#include <random>
#include <vector>

namespace voxgate::test {
namespace {

constexpr int kState = 64;
constexpr int kLayers = 4; // whisper.cpp knows no fewer
constexpr int kVocab = 51865;
constexpr int kWords = 50257;

class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

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
    put(int32_t{kState});
    put(int32_t{kVocab});
    text(name);
    values(size_t{kWords} * kState, false, 1);
    values(size_t{kVocab - kWords} * kState, false, 0.5F);
  }
  void norm(const std::string& name) {
    tensor(name + ".weight", {kState}, true, 1);
    tensor(name + ".bias", {kState}, true, 0.1F);
  }
  void linear(const std::string& name, int in, int out, bool bias = true) {
    tensor(name + ".weight", {in, out}, false, 1.7F / std::sqrt(static_cast<float>(in)));
    if (bias)
      tensor(name + ".bias", {out}, true, 0.1F);
  }
  void attention(const std::string& name) {
    linear(name + ".query", kState, kState);
    linear(name + ".key", kState, kState, false);
    linear(name + ".value", kState, kState);
    linear(name + ".out", kState, kState);
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
  std::string bytes_;
};

void put_vocabulary(Writer& out) {
  out.put(int32_t{kWords});
  for (int i = 0; i < kWords; ++i) {
    std::string word = i == 220 || i % 3 == 0 ? " " : "";
    if (i != 220)
      word.append("w").append(std::to_string(i));
    out.put(static_cast<uint32_t>(word.size()));
    out.text(word);
  }
}

} // namespace

std::string synthetic_whisper(unsigned seed) {
  Writer out(seed);
  out.put(kGgmlMagic);
  out.put(WhisperHparams{kVocab, 1500, kState, 2, kLayers, 448, kState, 2, kLayers, 80, 1});
  out.put(int32_t{80});
  out.put(int32_t{201});
  for (int mel = 0; mel < 80; ++mel) {
    for (int bin = 0; bin < 201; ++bin)
      out.put(bin / 2 == mel ? 0.02F : 0.0F);
  }
  put_vocabulary(out);

  out.tensor("encoder.positional_embedding", {kState, 1500}, true, 1);
  out.tensor("encoder.conv1.weight", {3, 80, kState}, false, 0.1F);
  out.tensor("encoder.conv1.bias", {1, kState}, true, 0.1F);
  out.tensor("encoder.conv2.weight", {3, kState, kState}, false, 0.1F);
  out.tensor("encoder.conv2.bias", {1, kState}, true, 0.1F);
  out.norm("encoder.ln_post");
  out.tensor("decoder.positional_embedding", {kState, 448}, true, 1);
  out.embedding("decoder.token_embedding.weight");
  out.norm("decoder.ln");
  for (const std::string side : {"encoder", "decoder"}) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const std::string block = side + ".blocks." + std::to_string(layer);
      out.norm(block + ".mlp_ln");
      out.linear(block + ".mlp.0", kState, 4 * kState);
      out.linear(block + ".mlp.2", 4 * kState, kState);
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
