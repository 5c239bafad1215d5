#pragma once

struct ggml_cgraph;
struct ggml_compute_params;

namespace voxgate {

class RowChain;

// Products of q8_0 weights with a few columns, as when a token is decoded, each with what follows it element
// by element: biases, sums, a scale, GELU, rows of a cache. In ggml the threads meet four times for a product
// with a bias. Here each of them rounds the columns for itself and keeps to its rows through all of that, and
// through further products that do not depend on those before them. The columns may be the result of a norm,
// which each thread computes for itself. Where threads have whole heads, each attends with its own right
// after their queries, keys and values. The numbers are the same to the last bit.
//
// Computes the nodes from `first` on, where `before` begins unless it is empty. Returns how many it has
// computed; 0 where it is not made for them.
int few_products(const ggml_cgraph* graph, int first, const RowChain& before,
                 const ggml_compute_params* params);

} // namespace voxgate
