#pragma once

#include <ggml-cpu-impl.h>
#include <ggml.h>

namespace voxgate {

// Lays out what the taps of a convolution over time see, as rows of 16-bit floats that a product of matrices
// takes: [time][channel][tap]. Source: [channel][time] in floats, not dilated. Returns false where the
// operation is another one, which ggml computes.
bool im2col(const ggml_compute_params* params, ggml_tensor* dst);

} // namespace voxgate
