#include "models/ggml_file.h"

namespace voxgate {
namespace {

// The sizes of the largest published models, with room for wider and deeper ones.
constexpr int32_t kMinVocabulary = 51864;
constexpr int32_t kMaxVocabulary = 51866;
constexpr int32_t kMaxAudioContext = 1500;
constexpr int32_t kMinTextContext = 16;
constexpr int32_t kMaxTextContext = 448;
constexpr int32_t kMaxTextLayers = 64;
constexpr int32_t kMinWidth = 32;
constexpr int32_t kMaxWidth = 4096;
constexpr uint32_t kMaxWordBytes = 1024;
constexpr int32_t kFftBins =
    201; // whisper.cpp indexes the filters with it and ignores the number in the file

void check_hparams(const GgmlFileReader& reader, const WhisperHparams& h) {
  // Token ids (end of text, languages, timestamps) are computed from the size of the vocabulary, so only the
  // three published sizes make sense: English, 99 languages, 100 languages.
  reader.require(h.n_vocab >= kMinVocabulary && h.n_vocab <= kMaxVocabulary,
                 "its vocabulary is not one of Whisper's");
  reader.require(h.n_audio_ctx >= 1 && h.n_audio_ctx <= kMaxAudioContext,
                 "its audio context is out of range");
  reader.require(h.n_text_ctx >= kMinTextContext && h.n_text_ctx <= kMaxTextContext,
                 "its text context is out of range");
  reader.require(h.n_text_layer >= 1 && h.n_text_layer <= kMaxTextLayers,
                 "its number of text layers is out of range");
  reader.require(h.n_audio_state >= kMinWidth && h.n_audio_state <= kMaxWidth &&
                     h.n_text_state == h.n_audio_state,
                 "its width is out of range");
  reader.require(h.n_audio_head >= 1 && h.n_audio_state % h.n_audio_head == 0 && h.n_text_head >= 1 &&
                     h.n_text_state % h.n_text_head == 0,
                 "its number of attention heads does not fit its width");
  reader.require(h.n_mels == 80 || h.n_mels == 128, "its number of mel bands is neither 80 nor 128");
  // For other numbers of layers whisper.cpp has no name, and a table lookup in its loader throws.
  reader.require(h.n_audio_layer == 4 || h.n_audio_layer == 6 || h.n_audio_layer == 12 ||
                     h.n_audio_layer == 24 || h.n_audio_layer == 32,
                 "its number of audio layers is not one of Whisper's");
  reader.require(h.n_audio_state % ggml_blck_size(reader.weight_type(h.ftype)) == 0,
                 "its width does not fit its quantization");
}

ExpectedTensors expected_tensors(const WhisperHparams& h, ggml_type weights) {
  const int64_t width = h.n_audio_state;
  // A convolution kernel is f16 also in a quantized file.
  const auto kernels = weights == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
  ExpectedTensors tensors{{"encoder.positional_embedding", {{width, h.n_audio_ctx, 1, 1}, GGML_TYPE_F32}},
                          {"decoder.positional_embedding", {{width, h.n_text_ctx, 1, 1}, GGML_TYPE_F32}},
                          {"decoder.token_embedding.weight", {{width, h.n_vocab, 1, 1}, weights}},
                          {"encoder.conv1.weight", {{3, h.n_mels, width, 1}, kernels}},
                          {"encoder.conv1.bias", {{1, width, 1, 1}, GGML_TYPE_F32}},
                          {"encoder.conv2.weight", {{3, width, width, 1}, kernels}},
                          {"encoder.conv2.bias", {{1, width, 1, 1}, GGML_TYPE_F32}}};
  const auto norm = [&](const std::string& name) {
    tensors[name + ".weight"] = tensors[name + ".bias"] = {{width, 1, 1, 1}, GGML_TYPE_F32};
  };
  const auto linear = [&](const std::string& name, int64_t in, int64_t out) {
    tensors[name + ".weight"] = {{in, out, 1, 1}, weights};
    tensors[name + ".bias"] = {{out, 1, 1, 1}, GGML_TYPE_F32};
  };
  const auto attention = [&](const std::string& name) {
    norm(name + "_ln");
    for (const char* part : {".query", ".key", ".value", ".out"})
      linear(name + part, width, width);
    tensors.erase(name + ".key.bias");
  };
  const auto blocks = [&](const std::string& half, int32_t count, bool has_cross_attention) {
    for (int32_t i = 0; i < count; ++i) {
      const auto block = half + ".blocks." + std::to_string(i) + ".";
      attention(block + "attn");
      if (has_cross_attention)
        attention(block + "cross_attn");
      norm(block + "mlp_ln");
      linear(block + "mlp.0", width, 4 * width);
      linear(block + "mlp.2", 4 * width, width);
    }
  };
  norm("encoder.ln_post");
  norm("decoder.ln");
  blocks("encoder", h.n_audio_layer, false);
  blocks("decoder", h.n_text_layer, true);
  return tensors;
}

} // namespace

WhisperHparams read_whisper_header(GgmlFileReader& reader) {
  reader.require(reader.remaining() >= 4 && reader.read<uint32_t>() == kGgmlMagic, "it is not a ggml model");
  const auto hparams = reader.read<WhisperHparams>();
  check_hparams(reader, hparams);
  const auto mels = reader.read<int32_t>();
  const auto bins = reader.read<int32_t>();
  reader.require(mels == hparams.n_mels && bins == kFftBins, "its mel filters do not fit");
  reader.read_string(sizeof(float) * static_cast<uint64_t>(mels) * kFftBins);

  const auto words = reader.read<int32_t>();
  reader.require(words > 0 && words <= hparams.n_vocab, "its vocabulary does not fit");
  bool has_space = false;
  for (int32_t i = 0; i < words; ++i) {
    const auto size = reader.read<uint32_t>();
    reader.require(size <= kMaxWordBytes, "its vocabulary is broken");
    has_space = reader.read_string(size) == " " || has_space;
  }
  // The decoder looks up this token without a check, on threads where an exception would end the process.
  reader.require(has_space, "its vocabulary is broken");
  return hparams;
}

void check_whisper_file(GgmlFileReader& reader) {
  const auto hparams = read_whisper_header(reader);
  // whisper.cpp also finds a wrong tensor, but then it does not free what it has loaded.
  reader.read_tensors(expected_tensors(hparams, reader.weight_type(hparams.ftype)));
}

} // namespace voxgate
