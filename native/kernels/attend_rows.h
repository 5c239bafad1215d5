#pragma once

#include <cstdint>

struct ggml_compute_params;
struct ggml_tensor;

namespace voxgate {

// Attention of few queries, as in a step of the decoder. In ggml the threads meet within it, and where there
// is one query, each sums a part of the positions in 16 bits, so that the result depends on how many threads
// compute. Here a thread computes whole rows.

bool has_few_queries(const ggml_tensor* attention);

// Computes the rows from `first` to `end`, where row h * queries + q is query q of head h: with
// unmasked_attention.h if that is made for it, or else with ggml's loop.
void attend_rows(const ggml_compute_params* params, ggml_tensor* attention, int64_t first, int64_t end);

} // namespace voxgate
