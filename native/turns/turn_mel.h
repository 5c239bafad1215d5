#pragma once

#include "audio/log_mel.h"

#include <span>

namespace voxgate {

// The spectrogram that the network for turns takes, as WhisperFeatureExtractor of Hugging Face's transformers
// 4 computes it with do_normalize: of samples with a mean of 0 and a variance of 1, mirrored at both ends.
//
// Writes rows of the bands of `mel`, one for each LogMel::kHop samples, of which there must be more than
// LogMel::kFrame.
void turn_log_mel(const LogMel& mel, std::span<const float> samples, size_t bands, float* rows,
                  const Team& team);

} // namespace voxgate
