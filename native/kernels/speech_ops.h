#pragma once

#include "tile_ops.h"

#include <ggml.h>

#include <algorithm>
#include <cstdint>

namespace voxgate {

// Parts of speech encoders, each as one operation of a graph where ggml's own operations would be up to
// fifteen. They compute in floats, on the CPU only, and are compiled once for each of ggml's CPU libraries;
// `speech_ops` finds those of a backend. All matrices are floats whose rows lie at any distance, a row for
// each position.
struct SpeechOps {
  // LayerNorm: `x`, weight, bias. `user` is speech_user(epsilon).
  ggml_custom_op_t norm;
  // Attention by `user` heads: queries, keys, values; for relative positions (Transformer-XL,
  // https://arxiv.org/abs/1901.02860) also the projected positions T-1 ... -(T-1), the biases of content and
  // position, and a row that is added to the scores of the keys. The result has attention_rows() rows, of
  // which the first T count.
  ggml_custom_op_t attention;
  // The middle of a Conformer's convolution (https://arxiv.org/abs/2005.08100): GLU over the halves of the
  // rows, depthwise convolution, batch norm, SiLU. `x`, kernel, mean, variance, weight, bias;
  // convolution_rows() rows.
  ggml_custom_op_t convolution;
  // The start of FastConformer's subsampling: 3x3 convolution to all channels, ReLU, 3x3 depthwise
  // convolution, both with stride 2. Spectrogram, kernel, bias, kernel, bias; subsample_rows() rows, of which
  // the first T * F count: a row of channels for each frequency of each time.
  ggml_custom_op_t subsample;
  // Its next step: bias, ReLU, 3x3 depthwise convolution with stride 2. Rows of channels, their bias, kernel,
  // bias; `user` is the number of frequencies; subsample_again_rows() rows.
  ggml_custom_op_t subsample_again;
  // What follows a product, in its own memory (ggml_custom_inplace): `x`, then the bias and what is added at
  // the end where `user`, which is speech_user(SpeechFinish), says that they are there.
  ggml_custom_op_t finish;
  // FSMN: values plus their depthwise convolution, plus `x`. Values, kernel, `x`; memory_rows() rows.
  ggml_custom_op_t memory;
  const TileOps* (*tiles)(); // tile_ops.h
};

// What the library of this backend offers; null for a GPU.
using GetSpeechOps = const SpeechOps* (*)();
constexpr const char* kGetSpeechOps = "voxgate_speech_ops";

// Bits of what SpeechOps::finish does, in this order.
enum SpeechFinish : int { kBias = 1, kRelu = 2, kSilu = 4, kHalf = 8, kCarry = 16 };

// ggml hands the pointer to the operation and never follows it.
inline void* speech_user(int value) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(value)); // NOLINT(performance-no-int-to-ptr)
}
inline void* speech_user(float value) {
  return speech_user(__builtin_bit_cast(int, value));
}

// Rows of a result with the working memory behind it.

constexpr int64_t kQueryBlock = 6;   // queries that are attended together
constexpr int64_t kColumnBlock = 64; // floats of a row that are computed together

constexpr int64_t up_to(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr int64_t kAttentionJobs = 16; // that have memory at least, so that more threads than heads can work

// The equal parts in which the queries of each head are attended, so that the last of the threads is done
// soonest. Each part lays keys and values out anew, which counts as a tenth of a head.
constexpr int64_t attention_parts(int64_t heads, int64_t threads) {
  constexpr double kLayout = 0.1;
  const auto time = [&](int64_t parts) {
    const int64_t rounds = (heads * parts + threads - 1) / threads;
    return static_cast<double>(rounds) * (1 / static_cast<double>(parts) + kLayout);
  };
  int64_t best = 1;
  for (int64_t parts = 2; heads * parts <= kAttentionJobs; ++parts)
    if (time(parts) < time(best))
      best = parts;
  return best;
}

// The memory of one part of a head, in floats. `window` is the number of relative positions, or 0.
struct AttentionMemory {
  AttentionMemory(int64_t depth, int64_t time, int64_t window)
      : keys(up_to(time, kColumnBlock)), span(window > 0 ? up_to(time + kQueryBlock, kColumnBlock) : 0),
        positions(window > 0 ? up_to(time + span, 16) : 0), values(up_to(depth, kColumnBlock)),
        floats(depth * (keys + positions) + time * values +
               kQueryBlock * (2 * depth + keys + span + values)) {}

  int64_t keys;      // width of a row of keys, and of scores
  int64_t span;      // width of the scores of positions for a block of queries
  int64_t positions; // width of a row of positions
  int64_t values;    // width of a row of values
  int64_t floats;
};

inline int64_t attention_rows(int64_t width, int64_t heads, int64_t time, int64_t window) {
  return time + std::max(heads, kAttentionJobs) *
                    up_to(AttentionMemory(width / heads, time, window).floats, width) / width;
}
constexpr int64_t convolution_rows(int64_t kernel, int64_t time) {
  return time + (time + kernel) + kernel + 2;
}
constexpr int kSubsampleThreads = 64; // with working memory
constexpr int64_t halved(int64_t extent) {
  return (extent + 1) / 2;
}
// For each thread three rows of the first convolution and both kernels.
constexpr int64_t subsample_rows(int64_t mels, int64_t frames) {
  return halved(halved(frames)) * halved(halved(mels)) + kSubsampleThreads * (3 * halved(mels) + 18);
}
constexpr int64_t subsample_again_rows(int64_t mels, int64_t frames) {
  return halved(frames) * halved(mels) + 9;
}
constexpr int64_t memory_rows(int64_t kernel, int64_t time) {
  return time + kernel;
}

} // namespace voxgate
