#include "vad/silero.h"

#include "backends/ggml_runtime.h"
#include "models/ggml_file.h"

#include <whisper.h>

#include <algorithm>
#include <array>

namespace voxgate {
namespace {

constexpr size_t kWindow = 512;
constexpr size_t kBlock = 128 * kWindow; // about 4 s: how long a cancel may go unseen, some 10 ms of work

// The graph in whisper.cpp is written for exactly this network; a file with other numbers would be read into
// tensors of the wrong size.
void check_file(const std::string& path) {
  GgmlFileReader reader(path);
  reader.require(reader.remaining() >= 8 && reader.read<uint32_t>() == kGgmlMagic, "it is not a ggml model");
  const auto name_bytes = reader.read<int32_t>();
  reader.require(name_bytes > 0 && name_bytes < 64, "it is not a Silero model");
  reader.require(reader.read_string(static_cast<uint64_t>(name_bytes)).starts_with("silero"),
                 "it is not a Silero model");
  reader.read<std::array<int32_t, 3>>(); // version
  constexpr std::array<int32_t, 19> expected{512, 64, 4,  129, 128, 3,   128, 64,  3, 64,
                                             64,  3,  64, 128, 3,   128, 128, 128, 1};
  reader.require(reader.read<std::array<int32_t, 19>>() == expected,
                 "its network is not the one of Silero 5 or 6");
  int tensors = 0;
  TensorHeader tensor;
  for (; reader.read_tensor_header(tensor); ++tensors)
    reader.skip(tensor.bytes);
  reader.require(tensors == 15, "it is incomplete");
}

} // namespace

void SileroVad::Free::operator()(whisper_vad_context* context) const {
  whisper_vad_free(context);
}

SileroVad::SileroVad(const std::string& path) {
  gpu_index("cpu");
  check_file(path);
  auto params = whisper_vad_default_context_params();
  params.n_threads = 1; // the network is so small that a second thread only adds waiting
  params.use_gpu = false;
  context_.reset(whisper_vad_init_from_file_with_params(path.c_str(), params));
  if (!context_)
    throw Failure(StatusCode::load_failed, "Cannot use model file " + path + ": its weights do not fit");
}

std::vector<float> SileroVad::probabilities(std::span<const float> samples, bool reset,
                                            const CancelToken& cancel) {
  cancel.check();
  if (reset)
    whisper_vad_reset_state(context_.get());
  std::vector<float> result;
  result.reserve((samples.size() + kWindow - 1) / kWindow);
  while (!samples.empty()) {
    cancel.check();
    const auto block = samples.first(std::min(kBlock, samples.size()));
    samples = samples.subspan(block.size());
    if (!whisper_vad_detect_speech_no_reset(context_.get(), block.data(), static_cast<int>(block.size())))
      throw Failure(StatusCode::inference_failed, "The voice activity model failed");
    const float* probs = whisper_vad_probs(context_.get());
    result.insert(result.end(), probs, probs + whisper_vad_n_probs(context_.get()));
  }
  return result;
}

} // namespace voxgate
