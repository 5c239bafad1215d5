#include "vad/silero_weights.h"

#include "models/ggml_file.h"

#include <ggml.h>

#include <array>
#include <map>

namespace voxgate {
namespace {

constexpr int32_t kMaxNameBytes = 63;

// A tensor that the file must hold: its type, its shape with the innermost dimension first, and its target.
struct Expected {
  ggml_type type;
  std::array<int64_t, 4> shape;
  std::vector<float>* target;
};

std::map<std::string, Expected> expected_tensors(SileroWeights& weights) {
  constexpr auto f16 = GGML_TYPE_F16;
  constexpr auto f32 = GGML_TYPE_F32;
  const std::string conv = "_model.encoder.";
  const std::string rnn = "_model.decoder.rnn.";
  auto& encoder = weights.encoder;
  return {{"_model.stft.forward_basis_buffer", {f16, {256, 1, 258, 1}, &weights.stft}},
          {conv + "0.reparam_conv.weight", {f16, {3, 129, 128, 1}, &encoder[0].weight}},
          {conv + "0.reparam_conv.bias", {f32, {128, 1, 1, 1}, &encoder[0].bias}},
          {conv + "1.reparam_conv.weight", {f16, {3, 128, 64, 1}, &encoder[1].weight}},
          {conv + "1.reparam_conv.bias", {f32, {64, 1, 1, 1}, &encoder[1].bias}},
          {conv + "2.reparam_conv.weight", {f16, {3, 64, 64, 1}, &encoder[2].weight}},
          {conv + "2.reparam_conv.bias", {f32, {64, 1, 1, 1}, &encoder[2].bias}},
          {conv + "3.reparam_conv.weight", {f16, {3, 64, 128, 1}, &encoder[3].weight}},
          {conv + "3.reparam_conv.bias", {f32, {128, 1, 1, 1}, &encoder[3].bias}},
          {rnn + "weight_ih", {f32, {128, 512, 1, 1}, &weights.input.weight}},
          {rnn + "bias_ih", {f32, {512, 1, 1, 1}, &weights.input.bias}},
          {rnn + "weight_hh", {f32, {128, 512, 1, 1}, &weights.recurrent.weight}},
          {rnn + "bias_hh", {f32, {512, 1, 1, 1}, &weights.recurrent.bias}},
          {"_model.decoder.decoder.2.weight", {f16, {128, 1, 1, 1}, &weights.output.weight}},
          {"_model.decoder.decoder.2.bias", {f32, {1, 1, 1, 1}, &weights.output.bias}}};
}

void check_header(GgmlFileReader& reader) {
  reader.require(reader.remaining() >= 8 && reader.read<uint32_t>() == kGgmlMagic, "it is not a ggml model");
  const auto name_bytes = reader.read<int32_t>();
  reader.require(name_bytes > 0 && name_bytes <= kMaxNameBytes, "it is not a Silero model");
  reader.require(reader.read_string(static_cast<uint64_t>(name_bytes)).starts_with("silero"),
                 "it is not a Silero model");
  reader.read<std::array<int32_t, 3>>(); // version
  constexpr std::array<int32_t, 19> expected{512, 64, 4,  129, 128, 3,   128, 64,  3, 64,
                                             64,  3,  64, 128, 3,   128, 128, 128, 1};
  reader.require(reader.read<std::array<int32_t, 19>>() == expected,
                 "its network is not the one of Silero 5 or 6");
}

std::vector<float> read_floats(GgmlFileReader& reader, const TensorHeader& tensor) {
  std::vector<float> floats(tensor.elements);
  if (tensor.type == GGML_TYPE_F32) {
    reader.read_bytes(floats.data(), tensor.bytes);
  } else {
    std::vector<ggml_fp16_t> halves(tensor.elements);
    reader.read_bytes(halves.data(), tensor.bytes);
    ggml_fp16_to_fp32_row(halves.data(), floats.data(), static_cast<int64_t>(floats.size()));
  }
  return floats;
}

} // namespace

SileroWeights read_silero_weights(const std::string& path) {
  GgmlFileReader reader(path);
  check_header(reader);
  SileroWeights weights;
  auto missing = expected_tensors(weights);
  for (TensorHeader tensor; reader.read_tensor_header(tensor);) {
    const auto found = missing.find(tensor.name);
    reader.require(found != missing.end() && found->second.type == tensor.type &&
                       found->second.shape == tensor.shape,
                   "its weights do not fit");
    *found->second.target = read_floats(reader, tensor);
    missing.erase(found);
  }
  reader.require(missing.empty(), "it is incomplete");
  reader.require_unchanged();
  return weights;
}

} // namespace voxgate
