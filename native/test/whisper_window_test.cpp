#include "harness.h"

#include "backends/whisper/whisper_window.h"

#include <ggml.h>

#include <cmath>

using namespace voxgate;

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
  const auto offsets = score_offsets(window, 256);
  CHECK(offsets.size() == 256);
  for (size_t key = 0; key < offsets.size(); ++key) {
    const float weight = std::exp(ggml_fp16_to_fp32(offsets[key]));
    CHECK(std::abs(weight - (key < 175 ? 1.0F : key < 200 ? 53.0F : 0.0F)) < 0.1F);
  }
}
