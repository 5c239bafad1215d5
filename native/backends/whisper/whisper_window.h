#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace voxgate {

// Which positions of Whisper's window of 30 s are encoded, where fewer are than it has.
//
// Whisper was trained on whole windows, in which silence follows the audio. A window that ends right behind
// the audio is several times faster, but the decoder may take it for speech that goes on, and loop. So the
// silence is sparse: behind `dense` positions, which hold the audio and some silence, each position stands
// for `stride` positions of silence. It has the place of the one in their middle, and an attention counts it
// as often as there are of them.
struct WhisperWindow {
  int positions = 0; // that are encoded
  int dense = 0;     // of them, from the beginning, side by side
  int stride = 1;    // 1 where all positions are dense

  bool is_sparse() const { return stride > 1; }
  // The place in the whole window of the first position behind the dense ones.
  int first_sparse() const { return dense + stride / 2; }

  bool operator==(const WhisperWindow&) const = default;
};

// Dense positions, from the first one to before the last one.
struct WindowPart {
  int begin = 0;
  int end = 0;
};

// The window of which `audio` positions of 20 ms hold audio, where `positions` of the model's `whole` are
// encoded.
WhisperWindow whisper_window(int audio, int positions, int whole);

// What is added to the score of each of `keys` keys in an attention, as 16-bit floats: nothing to those of
// the part, minus infinity to the dense ones beside it and to what is no position, and log(stride) to the
// others.
std::vector<uint16_t> score_offsets(const WhisperWindow& window, WindowPart part, size_t keys);

} // namespace voxgate
