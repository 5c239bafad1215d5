#pragma once

#include "cancel.h"

#include <string>

namespace voxgate {

// Rewrites a Whisper file whose weights are f32 or f16 with its two-dimensional weights as q8_0, byte for
// byte what whisper.cpp's own `quantize` writes. One tensor is in memory at a time. The target appears only
// when it is whole (written beside it as ".part", synced, renamed); on failure or cancel nothing is left.
void quantize_whisper_q8_0(const std::string& source, const std::string& target, const CancelToken& cancel);

} // namespace voxgate
