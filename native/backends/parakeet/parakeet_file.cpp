#include "backends/parakeet/parakeet_file.h"

namespace voxgate {
namespace {

constexpr int32_t kMaxVocabulary = 65536;
constexpr int32_t kMaxAudioContext = 65536;
constexpr int32_t kMaxWidth = 4096;
constexpr int32_t kMaxHeads = 64;
constexpr int32_t kMaxLayers = 64;
constexpr int32_t kMaxMels = 256;
constexpr int32_t kMinFft = 32;
constexpr int32_t kMaxFft = 4096;
constexpr int32_t kMaxChannels = 1024;
constexpr int32_t kMaxKernel = 63;
constexpr int32_t kMaxPredictionWidth = 4096;
constexpr int32_t kMaxPredictionLayers = 2; // parakeet.cpp counts the memory for tensor headers for two
constexpr int32_t kMaxDurations = 64;
constexpr uint32_t kMaxDuration = 256;
constexpr int32_t kMaxTokensPerFrame = 100;
constexpr uint32_t kMaxWordBytes = 1024;

struct Hparams {
  int32_t n_vocab, n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer, n_mels;
  int32_t ftype; // with the quantization version, as in the file
  int32_t n_fft, subsampling, n_channels, n_kernel, n_pred_dim, n_pred_layers, n_durations, n_max_tokens;
};

using Shape = std::array<int64_t, 4>;
void check_hparams(const GgmlFileReader& reader, const Hparams& h) {
  const auto within = [](int32_t value, int32_t low, int32_t high) { return value >= low && value <= high; };
  reader.require(within(h.n_vocab, 1, kMaxVocabulary), "its vocabulary is out of range");
  reader.require(within(h.n_audio_ctx, 1, kMaxAudioContext), "its audio context is out of range");
  reader.require(within(h.n_audio_state, 8, kMaxWidth) && h.n_audio_state % 2 == 0,
                 "its width is out of range");
  reader.require(within(h.n_audio_head, 1, kMaxHeads) && h.n_audio_state % h.n_audio_head == 0,
                 "its number of attention heads does not fit its width");
  reader.require(within(h.n_audio_layer, 1, kMaxLayers), "its number of audio layers is out of range");
  // The engine always builds three convolutions of stride 2, but counts frames by the number in the file.
  reader.require(h.subsampling == 8, "its subsampling is not 8");
  reader.require(within(h.n_mels, 8, kMaxMels) && h.n_mels % 8 == 0,
                 "its number of mel bands is out of range");
  reader.require(within(h.n_fft, kMinFft, kMaxFft) && (h.n_fft & (h.n_fft - 1)) == 0,
                 "its FFT size is out of range");
  reader.require(within(h.n_channels, 1, kMaxChannels), "its number of channels is out of range");
  reader.require(within(h.n_kernel, 1, kMaxKernel) && h.n_kernel % 2 == 1,
                 "its convolution kernel is out of range");
  reader.require(within(h.n_pred_dim, 1, kMaxPredictionWidth), "its decoder width is out of range");
  reader.require(within(h.n_pred_layers, 1, kMaxPredictionLayers),
                 "its number of decoder layers is out of range");
  reader.require(within(h.n_durations, 1, kMaxDurations), "its number of durations is out of range");
  reader.require(within(h.n_max_tokens, 1, kMaxTokensPerFrame),
                 "its number of tokens per frame is out of range");
}

// Filters, window, durations and vocabulary: their counts must agree with the hparams, which index them.
void check_tables(GgmlFileReader& reader, const Hparams& h) {
  const auto mels = reader.read<int32_t>();
  const auto bins = reader.read<int32_t>();
  reader.require(mels == h.n_mels && bins == h.n_fft / 2 + 1, "its mel filters do not fit");
  reader.read_string(sizeof(float) * static_cast<uint64_t>(mels) * static_cast<uint64_t>(bins));
  const auto window = reader.read<int32_t>();
  reader.require(window >= 1 && window <= h.n_fft, "its window does not fit");
  reader.read_string(sizeof(float) * static_cast<uint64_t>(window));
  for (int32_t i = 0; i < h.n_durations; ++i)
    reader.require(reader.read<uint32_t>() <= kMaxDuration, "its durations are out of range");
  reader.require(reader.read<int32_t>() == h.n_vocab, "its vocabulary does not fit");
  for (int32_t i = 0; i < h.n_vocab; ++i) {
    const auto size = reader.read<uint32_t>();
    reader.require(size <= kMaxWordBytes, "its vocabulary is broken");
    reader.read_string(size);
  }
}

void expect_encoder(ExpectedTensors& tensors, const Hparams& h, ggml_type type) {
  const int64_t channels = h.n_channels;
  const int64_t state = h.n_audio_state;
  const auto add = [&](const std::string& name, Shape shape, ggml_type tensor_type = GGML_TYPE_F32) {
    tensors["encoder." + name] = {shape, tensor_type};
  };
  add("pre_encode.out.weight", {h.n_mels / 8 * channels, state, 1, 1}, type);
  add("pre_encode.out.bias", {state, 1, 1, 1});
  for (const char* conv : {"0", "2", "3", "5", "6"}) {
    const auto name = std::string("pre_encode.conv.") + conv;
    const bool pointwise = *conv == '3' || *conv == '6';
    add(name + ".weight", pointwise ? Shape{1, 1, channels, channels} : Shape{3, 3, 1, channels});
    add(name + ".bias", {1, 1, channels, 1});
  }
  for (int32_t i = 0; i < h.n_audio_layer; ++i) {
    const auto layer = "layers." + std::to_string(i) + ".";
    for (const char* norm : {"norm_feed_forward1", "norm_conv", "norm_self_att", "norm_feed_forward2",
                             "norm_out", "conv.batch_norm"}) {
      add(layer + norm + ".weight", {state, 1, 1, 1});
      add(layer + norm + ".bias", {state, 1, 1, 1});
    }
    for (const char* feed_forward : {"feed_forward1", "feed_forward2"}) {
      add(layer + feed_forward + ".linear1.weight", {state, 4 * state, 1, 1}, type);
      add(layer + feed_forward + ".linear2.weight", {4 * state, state, 1, 1}, type);
    }
    add(layer + "conv.pointwise_conv1.weight", {state, 2 * state, 1, 1}, type);
    add(layer + "conv.depthwise_conv.weight", {h.n_kernel, state, 1, 1});
    add(layer + "conv.pointwise_conv2.weight", {state, state, 1, 1}, type);
    add(layer + "conv.batch_norm.running_mean", {state, 1, 1, 1});
    add(layer + "conv.batch_norm.running_var", {state, 1, 1, 1});
    add(layer + "conv.batch_norm.num_batches_tracked", {1, 1, 1, 1});
    for (const char* linear : {"linear_q", "linear_k", "linear_v", "linear_out", "linear_pos"})
      add(layer + "self_attn." + linear + ".weight", {state, state, 1, 1}, type);
    for (const char* bias : {"pos_bias_u", "pos_bias_v"})
      add(layer + "self_attn." + bias, {state / h.n_audio_head, h.n_audio_head, 1, 1});
  }
}

void expect_decoder(ExpectedTensors& tensors, const Hparams& h, ggml_type type) {
  const int64_t dim = h.n_pred_dim;
  const int64_t outputs = int64_t{h.n_vocab} + h.n_durations + 1;
  // As parakeet.cpp does: a decoder whose width is no multiple of the quantization block stays in f32.
  const ggml_type small = dim % ggml_blck_size(type) != 0 ? GGML_TYPE_F32 : type;
  tensors["decoder.prediction.embed.weight"] = {{dim, int64_t{h.n_vocab} + 1, 1, 1}, small};
  for (int32_t i = 0; i < h.n_pred_layers; ++i) {
    const auto lstm = [i](const char* name) {
      return "decoder.prediction.dec_rnn.lstm." + std::string(name) + "_l" + std::to_string(i);
    };
    tensors[lstm("weight_ih")] = {{dim, 4 * dim, 1, 1}, small};
    tensors[lstm("weight_hh")] = {{dim, 4 * dim, 1, 1}, small};
    tensors[lstm("bias_h")] = {{4 * dim, 1, 1, 1}, GGML_TYPE_F32};
  }
  tensors["joint.pred.weight"] = {{dim, dim, 1, 1}, small};
  tensors["joint.pred.bias"] = {{dim, 1, 1, 1}, GGML_TYPE_F32};
  tensors["joint.enc.weight"] = {{h.n_audio_state, dim, 1, 1}, type};
  tensors["joint.enc.bias"] = {{dim, 1, 1, 1}, GGML_TYPE_F32};
  tensors["joint.joint_net.2.weight"] = {{dim, outputs, 1, 1}, small};
  tensors["joint.joint_net.2.bias"] = {{outputs, 1, 1, 1}, GGML_TYPE_F32};
}

} // namespace

int32_t check_parakeet_file(GgmlFileReader& reader) {
  reader.require(reader.remaining() >= 4 && reader.read<uint32_t>() == kGgmlMagic, "it is not a ggml model");
  const auto h = reader.read<Hparams>();
  check_hparams(reader, h);
  const auto type = reader.weight_type(h.ftype);
  const auto block = ggml_blck_size(type);
  reader.require(h.n_audio_state % block == 0 && int64_t{h.n_mels / 8} * h.n_channels % block == 0,
                 "its width does not fit its quantization");
  check_tables(reader, h);
  ExpectedTensors expected;
  expect_encoder(expected, h, type);
  expect_decoder(expected, h, type);
  reader.read_tensors(std::move(expected));
  return h.n_vocab;
}

} // namespace voxgate
