#pragma once

#include "backends/sensevoice/sensevoice_shape.h"
#include "cancel.h"

#include <ggml-cpp.h>

#include <map>
#include <vector>

namespace voxgate {

struct SenseVoiceNorm {
  ggml_tensor* weight = nullptr;
  ggml_tensor* bias = nullptr;
};

struct SenseVoiceLinear {
  ggml_tensor* weight = nullptr; // any type, as in the file
  ggml_tensor* bias = nullptr;
};

struct SenseVoiceBlock {
  SenseVoiceNorm attention_norm, feed_forward_norm;
  SenseVoiceLinear qkv, out, expand, contract;
  ggml_tensor* memory = nullptr; // the depthwise kernel [kernel, 1, 1, width] over time
};

// The weights lie in one buffer of a device, as F32 except for the large matrices. Those that are used on the
// CPU before the graph runs stay in ordinary memory.
class SenseVoiceWeights {
 public:
  // Throws Failure{load_failed} unless the file holds exactly the tensors of the shape.
  SenseVoiceWeights(GgufFile& file, const SenseVoiceShape& shape, ggml_backend_buffer_type_t buffer_type,
                    const CancelToken& cancel);

  // The weights of one token's logit, of any type as floats, and behind them its bias.
  std::vector<float> head_row(int32_t token) const;

  uint64_t memory_bytes() const { return ggml_backend_buffer_get_size(buffer_.get()); }

  std::vector<float> shift, scale; // of the features, as wide as the input
  std::vector<float> queries;      // kSenseVoiceQueryRows rows as wide as the input
  std::vector<SenseVoiceBlock> blocks, tp_blocks;
  SenseVoiceNorm after_norm, tp_norm;
  SenseVoiceLinear head;

 private:
  class Binder;

  ggml_context_ptr context_;
  ggml_backend_buffer_ptr buffer_;
};

} // namespace voxgate
