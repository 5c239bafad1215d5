#include "synthetic_speakers.h"

#include <array>
#include <cmath>
#include <random>

namespace voxgate::test {
namespace {

using Tensors = std::map<std::string, SyntheticTensor>;

void add(Tensors& tensors, const std::string& name, const std::vector<int64_t>& shape) {
  static std::mt19937 generator(15);
  int64_t depth = 1;
  for (size_t i = 1; i < shape.size(); ++i)
    depth *= shape[i];
  std::uniform_real_distribution<float> uniform(-1, 1);
  auto& tensor = tensors[name];
  tensor.shape = shape;
  tensor.values.resize(static_cast<size_t>(shape[0] * depth));
  for (float& value : tensor.values)
    value = uniform(generator) * std::sqrt(3.0F / static_cast<float>(depth)) * (shape.size() == 1 ? 0.1F : 1);
}

void add_layer(Tensors& tensors, const std::string& name, const std::vector<int64_t>& shape,
               bool has_bias = true) {
  add(tensors, name + ".weight", shape);
  if (has_bias)
    add(tensors, name + ".bias", {shape[0]});
}

void add_norm(Tensors& tensors, const std::string& name, int64_t channels) {
  add(tensors, name + ".norm.factor", {channels});
  add(tensors, name + ".norm.summand", {channels});
  for (float& value : tensors[name + ".norm.factor"].values)
    value += 1;
}

std::string numbered(std::string name, size_t number) {
  return name.append(std::to_string(number));
}

void add_segmentation(Tensors& tensors) {
  const std::string prefix = "segmentation.";
  add_layer(tensors, prefix + "wave_norm", {1});
  tensors[prefix + "wave_norm.weight"].values = {1};
  constexpr std::array<int64_t, 3> channels{80, 60, 60};
  for (size_t i = 0; i < channels.size(); ++i) {
    const auto conv = numbered("segmentation.conv.", i);
    if (i == 0)
      add_layer(tensors, conv, {channels[0], 251}, false);
    else
      add_layer(tensors, conv, {channels[i], channels[i - 1], 5});
    auto norm = numbered("segmentation.norm.", i);
    add_layer(tensors, norm, {channels[i]});
    for (float& value : tensors[norm.append(".weight")].values)
      value += 1;
  }
  for (int layer = 0; layer < 4; ++layer)
    for (const std::string direction : {".forward", ".backward"}) {
      auto name = prefix + "lstm.";
      name.append(std::to_string(layer)).append(direction);
      add_layer(tensors, name + ".input", {512, layer == 0 ? 60 : 256});
      add_layer(tensors, name + ".recurrent", {512, 128});
    }
  add_layer(tensors, prefix + "linear.0", {128, 256});
  add_layer(tensors, prefix + "linear.1", {128, 128});
  add_layer(tensors, prefix + "classifier", {7, 128});
}

void add_embedding(Tensors& tensors) {
  const std::string head = "embedding.head.";
  add_layer(tensors, head + "first", {32, 1, 3, 3});
  for (const std::string block : {"1.0", "1.1", "2.0", "2.1"}) {
    add_layer(tensors, head + block + ".conv1", {32, 32, 3, 3});
    add_layer(tensors, head + block + ".conv2", {32, 32, 3, 3});
    if (block.ends_with('0'))
      add_layer(tensors, head + block + ".shortcut", {32, 32, 1, 1});
  }
  add_layer(tensors, head + "last", {32, 32, 3, 3});
  add_layer(tensors, "embedding.tdnn", {128, 320, 5});
  int64_t channels = 128;
  constexpr std::array<int, 3> layers{12, 24, 16};
  for (int block = 0; block < 3; ++block) {
    for (int i = 0; i < layers[static_cast<size_t>(block)]; ++i, channels += 32) {
      const auto name = "embedding.block." + std::to_string(block) + "." + std::to_string(i);
      add_norm(tensors, name, channels);
      add_layer(tensors, name + ".bottleneck", {128, channels, 1});
      add_layer(tensors, name + ".local", {32, 128, 3}, false);
      add_layer(tensors, name + ".context", {64, 128, 1});
      add_layer(tensors, name + ".gate", {32, 64, 1});
    }
    const auto name = "embedding.transit." + std::to_string(block);
    add_norm(tensors, name, channels);
    add_layer(tensors, name, {channels / 2, channels, 1}, block == 2);
    channels /= 2;
  }
  add_layer(tensors, "embedding.dense", {192, 2 * channels, 1});
}

template <typename T> void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& bytes, const std::string& text) {
  append<uint64_t>(bytes, text.size());
  bytes += text;
}

} // namespace

Tensors synthetic_speakers() {
  static const Tensors made = [] {
    Tensors tensors;
    add_segmentation(tensors);
    add_embedding(tensors);
    return tensors;
  }();
  return made;
}

// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
std::string speakers_file(const Tensors& tensors, const std::string& architecture) {
  constexpr size_t kAlignment = 32;
  std::string header = "GGUF", data;
  append<uint32_t>(header, 3);
  append<uint64_t>(header, tensors.size());
  append<uint64_t>(header, 1);
  append_text(header, "general.architecture");
  append<uint32_t>(header, 8); // a text
  append_text(header, architecture);
  for (const auto& [name, tensor] : tensors) {
    append_text(header, name);
    append(header, static_cast<uint32_t>(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;)
      append(header, tensor.shape[i]);
    append<uint32_t>(header, 0); // floats
    append<uint64_t>(header, data.size());
    data.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
    data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment);
  }
  header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment);
  return header + data;
}

} // namespace voxgate::test
