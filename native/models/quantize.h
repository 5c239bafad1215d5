#pragma once

#include "cancel.h"

#include <string>

namespace voxgate {

// Rewrites a Whisper file with f32 or f16 weights so that its two-dimensional weights are q8_0. The result
// has the same bytes as that of whisper.cpp's own `quantize`. One tensor at a time is in memory. The target
// appears only when it is complete: it is written beside it as ".part", synced and renamed. After a failure
// or a cancel nothing is left.
void quantize_whisper_q8_0(const std::string& source, const std::string& target, const CancelToken& cancel);

} // namespace voxgate
