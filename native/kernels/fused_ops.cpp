// Nodes of a graph that are computed as one. ggml-cpu.c asks before it computes a node.
#include "attend_rows.h"
#include "few_products.h"
#include "kernel_calls.h"
#include "row_chain.h"

#include <ggml-cpu-impl.h>
#include <ggml-impl.h>

using namespace voxgate;

// Returns how many nodes from `first` on it has computed.
extern "C" int voxgate_fused(const ggml_cgraph* graph, int first, const ggml_compute_params* params) {
  ggml_tensor* const node = graph->nodes[first];
  if (node->op == GGML_OP_FLASH_ATTN_EXT && has_few_queries(node)) {
    const int64_t rows = ggml_nrows(node);
    attend_rows(params, node, rows * params->ith / params->nth, rows * (params->ith + 1) / params->nth);
    return 1;
  }
  const RowChain chain(graph, first);
  if (const int count = few_products(graph, first, chain, params); count > 0)
    return count;
  if (chain.count() < 2)
    return 0;
  VOXGATE_COUNT_CALL(fused_ops);
  chain.compute(params);
  return chain.count();
}
