#include "vad/silero_weights.h"

#include "models/ggml_file.h"

#include <array>

namespace voxgate {
namespace {

constexpr int32_t kMaxNameBytes = 63;

ExpectedTensors expected_tensors(SileroWeights& weights) {
  constexpr auto f16 = GGML_TYPE_F16;
  constexpr auto f32 = GGML_TYPE_F32;
  const std::string conv = "_model.encoder.";
  const std::string rnn = "_model.decoder.rnn.";
  auto& encoder = weights.encoder;
  return {{"_model.stft.forward_basis_buffer", {{256, 1, 258, 1}, f16, &weights.stft}},
          {conv + "0.reparam_conv.weight", {{3, 129, 128, 1}, f16, &encoder[0].weight}},
          {conv + "0.reparam_conv.bias", {{128, 1, 1, 1}, f32, &encoder[0].bias}},
          {conv + "1.reparam_conv.weight", {{3, 128, 64, 1}, f16, &encoder[1].weight}},
          {conv + "1.reparam_conv.bias", {{64, 1, 1, 1}, f32, &encoder[1].bias}},
          {conv + "2.reparam_conv.weight", {{3, 64, 64, 1}, f16, &encoder[2].weight}},
          {conv + "2.reparam_conv.bias", {{64, 1, 1, 1}, f32, &encoder[2].bias}},
          {conv + "3.reparam_conv.weight", {{3, 64, 128, 1}, f16, &encoder[3].weight}},
          {conv + "3.reparam_conv.bias", {{128, 1, 1, 1}, f32, &encoder[3].bias}},
          {rnn + "weight_ih", {{128, 512, 1, 1}, f32, &weights.input.weight}},
          {rnn + "bias_ih", {{512, 1, 1, 1}, f32, &weights.input.bias}},
          {rnn + "weight_hh", {{128, 512, 1, 1}, f32, &weights.recurrent.weight}},
          {rnn + "bias_hh", {{512, 1, 1, 1}, f32, &weights.recurrent.bias}},
          {"_model.decoder.decoder.2.weight", {{128, 1, 1, 1}, f16, &weights.output.weight}},
          {"_model.decoder.decoder.2.bias", {{1, 1, 1, 1}, f32, &weights.output.bias}}};
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

} // namespace

SileroWeights read_silero_weights(const std::string& path) {
  GgmlFileReader reader(path);
  check_header(reader);
  SileroWeights weights;
  reader.read_tensors(expected_tensors(weights));
  reader.require_unchanged();
  return weights;
}

} // namespace voxgate
