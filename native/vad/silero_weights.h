#pragma once

#include <string>
#include <vector>

namespace voxgate {

// The tensors of a Silero file as floats, row by row: [outputs][inputs][taps] of a convolution.
struct SileroWeights {
  struct Linear {
    std::vector<float> weight;
    std::vector<float> bias;
  };

  std::vector<float> stft; // [real and imaginary parts of 129 bins][256 samples], windowed
  Linear encoder[4];       // convolutions of three taps: 129 -> 128 -> 64 -> 64 -> 128
  Linear input;            // input weights of the LSTM: [input, forget, cell and output gate of 128][128]
  Linear recurrent;        // recurrent weights of the LSTM, in the same order
  Linear output;           // [1][128]
};

// Throws Failure{load_failed} unless the file holds exactly the network of Silero 5 or 6 for 16 kHz.
SileroWeights read_silero_weights(const std::string& path);

} // namespace voxgate
