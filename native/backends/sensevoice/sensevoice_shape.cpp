#include "backends/sensevoice/sensevoice_shape.h"

#include "backend.h"
#include "backends/sensevoice/sensevoice_fbank.h"
#include "models/sentencepiece.h"

#include <algorithm>

namespace voxgate {
namespace {

constexpr int kMaxBlocks = 128;
constexpr int kMaxWidth = 4096;
constexpr int kMaxHidden = 16384;
constexpr int kMaxKernel = 31;
constexpr int kMaxStack = 15;
constexpr int kMaxMels = 128;
constexpr int kMaxVocabulary = 200000;

// Token types as llama.cpp writes them.
constexpr int32_t kNormalPiece = 1;
constexpr int32_t kUserDefinedPiece = 4;

int read_int(const GgufFile& file, const std::string& key, int low, int high) {
  const auto number = file.number(key);
  if (number < static_cast<uint32_t>(low) || number > static_cast<uint32_t>(high))
    file.fail("its value for " + key + " is outside " + std::to_string(low) + ".." + std::to_string(high));
  return static_cast<int>(number);
}

void expect(const GgufFile& file, const std::string& key, const std::string& wanted) {
  if (file.text(key) != wanted)
    file.fail("its value for " + key + " is not " + wanted);
}

int read_query(const GgufFile& file, const std::string& name) {
  return read_int(file, "stt.sensevoice.special." + name, 0, kSenseVoiceQueryRows - 1);
}

// The recipe of the features is compiled in (sensevoice_fbank); a file made for another one is refused.
void check_frontend(const GgufFile& file) {
  expect(file, "stt.frontend.type", "kaldi_fbank_lfr");
  expect(file, "stt.frontend.fbank_style", "kaldi_htk");
  expect(file, "stt.frontend.window", "hamming");
  expect(file, "stt.frontend.normalize", "per_feature");
  read_int(file, "stt.frontend.sample_rate", kSampleRate, kSampleRate);
  read_int(file, "stt.frontend.win_length", Fbank::kFrame, Fbank::kFrame);
  read_int(file, "stt.frontend.hop_length", Fbank::kHop, Fbank::kHop);
  if (!file.flag("stt.frontend.snip_edges", true) || !file.flag("stt.frontend.upscale_samples", true))
    file.fail("its features are of another kind");
}

int32_t find_tag(const GgufFile& file, const std::vector<std::string>& pieces, const std::string& name) {
  const auto found = std::ranges::find(pieces, "<|" + name + "|>");
  if (found == pieces.end())
    file.fail("its vocabulary has no <|" + name + "|>");
  return static_cast<int32_t>(found - pieces.begin());
}

} // namespace

SenseVoiceShape read_sensevoice_shape(const GgufFile& file) {
  expect(file, "general.architecture", "sensevoice");
  check_frontend(file);
  const std::string encoder = "stt.sensevoice.encoder.";
  expect(file, encoder + "attention_type", "sanm");
  if (!file.flag(encoder + "normalize_before", true))
    file.fail("its norms are behind the layers");
  read_int(file, encoder + "sanm_shift", 0, 0);

  SenseVoiceShape shape;
  shape.blocks = read_int(file, encoder + "n_blocks", 1, kMaxBlocks);
  shape.tp_blocks = read_int(file, encoder + "tp_blocks", 0, kMaxBlocks);
  shape.width = read_int(file, encoder + "d_model", 1, kMaxWidth);
  shape.heads = read_int(file, encoder + "n_heads", 1, shape.width);
  shape.hidden = read_int(file, encoder + "d_ff", 1, kMaxHidden);
  shape.kernel = read_int(file, encoder + "kernel_size", 1, kMaxKernel);
  shape.mels = read_int(file, "stt.frontend.num_mels", 2, kMaxMels);
  shape.stack = read_int(file, "stt.frontend.lfr_m", 1, kMaxStack);
  shape.stride = read_int(file, "stt.frontend.lfr_n", 1, kMaxStack);
  shape.input = read_int(file, encoder + "d_input", 1, kMaxMels * kMaxStack);
  if (shape.input != shape.mels * shape.stack)
    file.fail("its input is not as wide as its features");
  if (shape.input % 2 != 0 || shape.input < 4) // sines and cosines of the positions, by halves
    file.fail("its input has an impossible width");
  if (shape.width % shape.heads != 0)
    file.fail("its heads do not share its width");
  if (shape.kernel % 2 == 0)
    file.fail("its kernel has no center");

  shape.auto_query = read_query(file, "lang_auto");
  shape.itn_query = read_query(file, "withitn");
  shape.plain_query = read_query(file, "woitn");
  for (const char* code : {"zh", "en", "yue", "ja", "ko"})
    shape.languages.push_back({code, read_query(file, std::string("lang_") + code), 0});
  return shape;
}

SenseVoiceVocabulary read_sensevoice_vocabulary(const GgufFile& file, SenseVoiceShape& shape) {
  SenseVoiceVocabulary vocabulary;
  vocabulary.pieces = file.texts("tokenizer.ggml.tokens");
  const auto& pieces = vocabulary.pieces;
  if (pieces.empty() || pieces.size() > kMaxVocabulary)
    file.fail("its vocabulary has an impossible size");
  shape.vocabulary = static_cast<int>(pieces.size());
  const auto& types = file.numbers("tokenizer.ggml.token_type");
  if (types.size() != pieces.size())
    file.fail("its vocabulary has pieces without a type");
  for (size_t i = 0; i < pieces.size(); ++i) {
    const bool written = types[i] == kNormalPiece || types[i] == kUserDefinedPiece;
    vocabulary.spoken.push_back(written && tag_name(pieces[i]).empty());
  }
  vocabulary.blank = read_int(file, "tokenizer.ggml.blank_token_id", 0, shape.vocabulary - 1);
  vocabulary.no_speech = find_tag(file, pieces, "nospeech");
  for (auto& language : shape.languages)
    language.token = find_tag(file, pieces, language.code);
  return vocabulary;
}

} // namespace voxgate
