#pragma once

#include "backends/sensevoice/sensevoice_compute.h"
#include "backends/sensevoice/sensevoice_ctc.h"
#include "backends/sensevoice/sensevoice_weights.h"

#include <array>
#include <span>
#include <vector>

namespace voxgate {

// The network: features in, a row of logits over the vocabulary for each position out.
class SenseVoiceEncoder {
 public:
  // `max_frames` stacked frames are the most that `encode` may be given; buffers for them are made now.
  SenseVoiceEncoder(GgufFile& file, const SenseVoiceShape& shape, const std::string& device, int threads,
                    int max_frames, const CancelToken& cancel);

  // Stacked frames (rows of `shape.input` values, not yet normalized) behind the four rows of the query
  // table.
  void encode(std::span<const float> frames, const std::array<int32_t, kSenseVoiceQueries>& queries,
              const CancelToken& cancel);
  // Of the last `encode`; the four queries come first.
  int positions() const { return positions_; }
  std::vector<SenseVoicePeak> peaks(int32_t blank) const;
  // On AMX tiles only the logits of the first position are kept.
  void read_logits(int position, std::vector<float>& row) const;
  // Of some tokens at any position of the last `encode`. On tiles they are computed when they are asked for.
  SenseVoiceScores scores() const;

  uint64_t memory_bytes() const { return weights_.memory_bytes() + compute_.memory_bytes(); }

 private:
  class Builder;

  void build(int positions);
  SenseVoiceScores tile_scores() const;
  void add_waves(size_t positions); // up to so many
  std::vector<float> input(std::span<const float> frames,
                           const std::array<int32_t, kSenseVoiceQueries>& queries);

  SenseVoiceShape shape_;
  GraphCompute compute_;
  SenseVoiceWeights weights_;
  const TileOps* tiles_; // null where they cannot be used
  std::vector<char> graph_memory_;
  ggml_context_ptr graph_context_; // of the last graph; lives in graph_memory_
  ggml_cgraph* graph_ = nullptr;
  ggml_tensor* input_ = nullptr;
  ggml_tensor* logits_ = nullptr; // or scores (kernels/tile_ops.h)
  ggml_tensor* heard_ = nullptr;  // what those are computed of; null without tiles
  int positions_ = 0;
  std::vector<float> waves_; // what tells the positions apart; rows of `shape.input` values
};

} // namespace voxgate
