#include "harness.h"
#include "upstream_whisper.h"
#include "whisper_fixtures.h"

#include "backends/whisper/whisper_call_scope.h"
#include "backends/whisper/whisper_seams.h"
#include "backends/whisper/whisper_window.h"

#include <ggml.h>

#include <cmath>

using namespace voxgate;
using namespace voxgate::test;

TEST("whisper window: silence behind the audio reaches to the end of the whole window") {
  for (const int audio : {1, 50, 150, 244})
    for (const int positions : {320, 384}) {
      const auto window = whisper_window(audio, positions, 1500);
      CHECK(window.is_sparse() && window.dense == audio + 75 && window.positions == positions);
      const int last = window.first_sparse() + window.stride * (positions - window.dense - 1);
      CHECK(last < 1500);
      CHECK(last + window.stride > 1500 - (positions - window.dense)); // what a whole stride does not fill
    }
}

TEST("whisper window: all positions are side by side where there is no room behind the audio") {
  for (const auto& [audio, positions] : {std::pair{245, 320}, {300, 320}, {320, 320}, {1500, 1500}})
    CHECK(whisper_window(audio, positions, 1500) ==
          (WhisperWindow{.positions = positions, .dense = positions, .stride = 1}));
  CHECK(!whisper_window(100, 1500, 1500).is_sparse()); // the whole window is encoded
}

TEST("whisper window: a position counts as often as the positions that it stands for") {
  const auto window = whisper_window(100, 200, 1500);
  CHECK(window.dense == 175 && window.stride == 53);
  const auto offsets = score_offsets(window, {0, 175}, 256);
  CHECK(offsets.size() == 256);
  for (size_t key = 0; key < offsets.size(); ++key) {
    const float weight = std::exp(ggml_fp16_to_fp32(offsets[key]));
    CHECK(std::abs(weight - (key < 175 ? 1.0F : key < 200 ? 53.0F : 0.0F)) < 0.1F);
  }
}

TEST("whisper window: a part of the positions is heard, and none beside it") {
  const auto offsets = score_offsets(whisper_window(100, 200, 1500), {20, 50}, 256);
  for (size_t key = 0; key < 175; ++key) {
    const float weight = std::exp(ggml_fp16_to_fp32(offsets[key]));
    CHECK(weight == (key >= 20 && key < 50 ? 1.0F : 0.0F));
  }
}

// No reference has such a window. It must be nearer to the whole one than a window that ends behind the
// audio.
TEST("whisper window: silence behind the audio is sparse") {
  const auto samples = noise(40000);
  const Upstream upstream;
  const auto logits = [&](int positions, bool sparse) {
    ThreadBudget budget(1);
    const CancelToken never;
    CallScope scope(*upstream.state, budget, never);
    whisper_internals::set_audio_context(*upstream.state, positions);
    if (sparse)
      scope.set_window(whisper_internals::window_of(*upstream.context, *upstream.state, 125));
    CHECK(whisper_internals::compute_spectrogram(*upstream.context, *upstream.state, samples, 1));
    CHECK(whisper_internals::encode_window(*upstream.context, *upstream.state, 0, 1));
    const auto prompt = whisper_internals::decoder_prompt(*upstream.context, {}, "en", false, true);
    const auto last = whisper_internals::decode_prompt(*upstream.context, *upstream.state, prompt, 1).last;
    return std::vector<float>(last.begin(), last.end());
  };
  const auto whole = logits(1500, true);
  CHECK(logits(1500, false) == whole);
  const auto distance = [&](const std::vector<float>& from) {
    double sum = 0;
    for (size_t i = 0; i < whole.size(); ++i)
      sum += std::pow(from[i] - whole[i], 2);
    return sum;
  };
  for (const int positions : {210, 256, 320}) {
    const double sparse = distance(logits(positions, true));
    CHECK(sparse < 0.4 * distance(logits(positions, false)));
  }

  seam_counts = {};
  auto options = english();
  options.audio_context = 300;
  load_synthetic(1)->transcribe(samples, options, CancelToken());
  CHECK(seam_counts.sparse_windows == 1);
}
