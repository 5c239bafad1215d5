#include "models/ggml_file.h"

#include <ggml.h>

#include <array>
#include <optional>
#include <set>
#include <string_view>

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
}

void check_weight_type(const GgmlFileReader& reader, const WhisperHparams& h) {
  reader.require(h.ftype >= 0, "its weight type is unknown");
  switch (h.ftype % GGML_QNT_VERSION_FACTOR) {
  case GGML_FTYPE_ALL_F32:
  case GGML_FTYPE_MOSTLY_F16:
    return;
  case GGML_FTYPE_MOSTLY_Q4_0:
  case GGML_FTYPE_MOSTLY_Q4_1:
  case GGML_FTYPE_MOSTLY_Q5_0:
  case GGML_FTYPE_MOSTLY_Q5_1:
  case GGML_FTYPE_MOSTLY_Q8_0:
    reader.require(h.n_audio_state % 32 == 0, "its width does not fit its quantization");
    return;
  case GGML_FTYPE_MOSTLY_Q2_K:
  case GGML_FTYPE_MOSTLY_Q3_K:
  case GGML_FTYPE_MOSTLY_Q4_K:
  case GGML_FTYPE_MOSTLY_Q5_K:
  case GGML_FTYPE_MOSTLY_Q6_K:
    reader.require(h.n_audio_state % 256 == 0, "its width does not fit its quantization");
    return;
  default:
    reader.fail("its weight type is unknown");
  }
}

struct Expected {
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  bool is_weight = false; // true if it has the file's weight type; all other tensors are f32
};

// The tensors inside a block of the encoder or decoder, by the part of the name after "blocks.N.".
std::optional<Expected> expected_in_block(std::string_view name, int64_t width) {
  if (name == "mlp.0.weight")
    return Expected{{width, 4 * width, 1, 1}, true};
  if (name == "mlp.2.weight")
    return Expected{{4 * width, width, 1, 1}, true};
  if (name == "mlp.0.bias")
    return Expected{{4 * width, 1, 1, 1}, false};
  for (const std::string_view part : {"query", "key", "value", "out"}) {
    if (name.ends_with(std::string(part) + ".weight"))
      return Expected{{width, width, 1, 1}, true};
  }
  return Expected{{width, 1, 1, 1}, false};
}

// Returns nullopt for a name that is not Whisper's. check_whisper_file checks by counting that all are there.
std::optional<Expected> expected_tensor(std::string_view name, const WhisperHparams& h) {
  const int64_t width = h.n_audio_state;
  if (name == "encoder.positional_embedding")
    return Expected{{width, h.n_audio_ctx, 1, 1}, false};
  if (name == "decoder.positional_embedding")
    return Expected{{width, h.n_text_ctx, 1, 1}, false};
  if (name == "decoder.token_embedding.weight")
    return Expected{{width, h.n_vocab, 1, 1}, true};
  if (name == "encoder.conv1.weight")
    return Expected{{3, h.n_mels, width, 1}, false};
  if (name == "encoder.conv2.weight")
    return Expected{{3, width, width, 1}, false};
  if (name == "encoder.conv1.bias" || name == "encoder.conv2.bias")
    return Expected{{1, width, 1, 1}, false};
  if (name.starts_with("encoder.ln_post.") || name.starts_with("decoder.ln."))
    return Expected{{width, 1, 1, 1}, false};
  constexpr size_t kPrefix = std::string_view("encoder.blocks.").size();
  const size_t dot = name.find('.', kPrefix);
  if ((name.starts_with("encoder.blocks.") || name.starts_with("decoder.blocks.")) &&
      dot != std::string_view::npos)
    return expected_in_block(name.substr(dot + 1), width);
  return std::nullopt;
}

// whisper.cpp also finds a wrong tensor, but then it does not free what it has loaded.
void check_tensor(const GgmlFileReader& reader, const TensorHeader& tensor, const WhisperHparams& h) {
  const auto expected = expected_tensor(tensor.name, h);
  if (!expected)
    reader.fail("it holds an unknown tensor " + tensor.name);
  if (expected->shape != tensor.shape)
    reader.fail("the tensor " + tensor.name + " has another shape than the header requires");
  const auto weights = ggml_ftype_to_ggml_type(static_cast<ggml_ftype>(h.ftype % GGML_QNT_VERSION_FACTOR));
  const bool is_kernel = tensor.dims == 3; // a convolution kernel is f16 also in a quantized file
  const auto kernels = weights == GGML_TYPE_F32 ? GGML_TYPE_F32 : GGML_TYPE_F16;
  const auto type = expected->is_weight ? weights : is_kernel ? kernels : GGML_TYPE_F32;
  if (type != tensor.type)
    reader.fail("the tensor " + tensor.name + " has another type than the header requires");
}

void append(std::vector<char>& target, const void* data, size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  target.insert(target.end(), bytes, bytes + size);
}

} // namespace

WhisperHeader read_whisper_header(GgmlFileReader& reader) {
  WhisperHeader header{};
  reader.require(reader.remaining() >= 4 && reader.read<uint32_t>() == kGgmlMagic, "it is not a ggml model");
  header.hparams = reader.read<WhisperHparams>();
  check_hparams(reader, header.hparams);
  check_weight_type(reader, header.hparams);

  auto& rest = header.filters_and_vocabulary;
  const int32_t filters[2] = {reader.read<int32_t>(), reader.read<int32_t>()};
  reader.require(filters[0] == header.hparams.n_mels && filters[1] == kFftBins, "its mel filters do not fit");
  append(rest, filters, sizeof filters);
  const auto filter_data = reader.read_string(sizeof(float) * static_cast<uint64_t>(filters[0]) * kFftBins);
  append(rest, filter_data.data(), filter_data.size());

  const auto words = reader.read<int32_t>();
  reader.require(words > 0 && words <= header.hparams.n_vocab, "its vocabulary does not fit");
  append(rest, &words, sizeof words);
  bool has_space = false;
  for (int32_t i = 0; i < words; ++i) {
    const auto size = reader.read<uint32_t>();
    reader.require(size <= kMaxWordBytes, "its vocabulary is broken");
    const auto word = reader.read_string(size);
    has_space = has_space || word == " ";
    append(rest, &size, sizeof size);
    append(rest, word.data(), word.size());
  }
  // The decoder looks up this token without a check, on threads where an exception would end the process.
  reader.require(has_space, "its vocabulary is broken");
  return header;
}

uint64_t check_whisper_file(GgmlFileReader& reader) {
  const auto header = read_whisper_header(reader);
  const auto& h = header.hparams;

  const size_t expected =
      11 + 15 * static_cast<size_t>(h.n_audio_layer) + 24 * static_cast<size_t>(h.n_text_layer);
  std::set<std::string> names;
  uint64_t bytes = 0;
  TensorHeader tensor;
  while (reader.read_tensor_header(tensor)) {
    reader.require(names.insert(tensor.name).second, "a tensor is there twice");
    check_tensor(reader, tensor, h);
    bytes += tensor.bytes;
    reader.skip(tensor.bytes);
  }
  // A file that was cut between two tensors is well-formed, and whisper.cpp even accepts one without weights.
  if (names.size() != expected)
    reader.fail("it holds " + std::to_string(names.size()) + " of " + std::to_string(expected) + " tensors");
  return bytes;
}

} // namespace voxgate
