#pragma once

#include "audio/fbank.h"

// The features SenseVoice was trained on: Kaldi's filterbank as FunASR computes it, then neighboring frames
// stacked ("low frame rate").

namespace voxgate {

inline constexpr FbankRecipe kSenseVoiceFbank{FbankWindow::hamming, 32768};

// Row t of the result is rows t*stride - (stack-1)/2 ... of the input side by side, the edges repeated.
std::vector<float> stack_frames(std::span<const float> rows, int width, int stack, int stride);

} // namespace voxgate
