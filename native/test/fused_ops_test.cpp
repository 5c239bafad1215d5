#include "harness.h"
#include "kernel_graph.h"

#include <ggml-alloc.h>

#include <functional>
#include <vector>

// These tests compare ggml's graphs on the CPU, with what stands in front of ggml's own operations, with the
// same graphs without it or with plain loops.

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr float kEpsilon = 1e-5F;

// The matrices of a graph: `x` and what is added to it have a row of `width` floats for each position.
struct Inputs {
  Inputs(ggml_context* context, int64_t width, int64_t rows)
      : x(ggml_new_tensor_2d(context, GGML_TYPE_F32, width, rows)),
        carried(ggml_new_tensor_2d(context, GGML_TYPE_F32, width, rows)),
        factor(ggml_new_tensor_1d(context, GGML_TYPE_F32, width)),
        bias(ggml_new_tensor_1d(context, GGML_TYPE_F32, width)),
        bias_of_rows(ggml_new_tensor_2d(context, GGML_TYPE_F32, 1, rows)) {}

  void take() const {
    for (ggml_tensor* tensor : {x, carried, factor, bias, bias_of_rows})
      ggml_set_input(tensor);
  }

  void fill() const {
    unsigned seed = 1;
    for (ggml_tensor* tensor : {x, carried, factor, bias, bias_of_rows})
      if (tensor->data != nullptr) { // the graph has it
        const auto values = random_values(static_cast<size_t>(ggml_nelements(tensor)), seed++);
        ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
      }
  }

  ggml_tensor *x, *carried, *factor, *bias, *bias_of_rows;
};

struct Pattern {
  // The nodes, each made of the one before; the last is the result.
  std::function<std::vector<ggml_tensor*>(ggml_context*, const Inputs&)> nodes;
  bool fused = true;
};

const std::vector<Pattern> kPatterns{
    // a norm with its weights
    {[](ggml_context* c, const Inputs& in) {
      auto* norm = ggml_norm(c, in.x, kEpsilon);
      auto* scaled = ggml_mul(c, norm, in.factor);
      return std::vector{norm, scaled, ggml_add(c, scaled, in.bias)};
    }},
    // a bias and GELU
    {[](ggml_context* c, const Inputs& in) {
      auto* sum = ggml_add(c, in.x, in.bias);
      return std::vector{sum, ggml_gelu(c, sum)};
    }},
    // a bias of each row and GELU
    {[](ggml_context* c, const Inputs& in) {
      auto* sum = ggml_add(c, in.x, in.bias_of_rows);
      return std::vector{sum, ggml_gelu(c, sum)};
    }},
    // a bias and what is carried past, in either order
    {[](ggml_context* c, const Inputs& in) {
      auto* sum = ggml_add(c, in.x, in.bias);
      auto* both = ggml_add(c, in.carried, sum);
      return std::vector{sum, both, ggml_add(c, both, in.bias)};
    }},
    // a result in the place of what is carried past
    {[](ggml_context* c, const Inputs& in) {
      auto* doubled = ggml_scale(c, in.carried, 2); // its memory is free for the result
      auto* sum = ggml_add(c, in.x, in.bias);
      return std::vector{sum, ggml_add(c, doubled, sum)};
    }},
    // a node that two others need
    {[](ggml_context* c, const Inputs& in) {
       auto* sum = ggml_add(c, in.x, in.bias);
       return std::vector{sum, ggml_mul(c, ggml_gelu(c, sum), sum)};
     },
     false},
    // more nodes than are computed as one
    {[](ggml_context* c, const Inputs& in) {
      std::vector<ggml_tensor*> nodes{ggml_norm(c, in.x, kEpsilon)};
      for (int i = 0; i < 6; ++i)
        nodes.push_back(ggml_add(c, nodes.back(), in.bias));
      return nodes;
    }},
    // a node by itself
    {[](ggml_context* c, const Inputs& in) { return std::vector{ggml_add(c, in.x, in.bias)}; }, false},
};

std::vector<float> computed(const Pattern& pattern, int64_t width, int64_t rows, int threads, bool apart) {
  KernelGraph graph(threads);
  const Inputs inputs(graph.context.get(), width, rows);
  inputs.take();
  const auto nodes = pattern.nodes(graph.context.get(), inputs);
  if (apart)
    for (ggml_tensor* node : nodes)
      ggml_set_output(node); // what a caller may read is computed by itself
  ggml_set_output(nodes.back());
  ggml_cgraph* plan = ggml_new_graph(graph.context.get());
  ggml_build_forward_expand(plan, nodes.back());
  // As in the graphs of models, memory that nothing needs any more is taken again.
  const ggml_gallocr_ptr memory(ggml_gallocr_new(ggml_backend_get_default_buffer_type(graph.backend.get())));
  CHECK(ggml_gallocr_alloc_graph(memory.get(), plan));
  inputs.fill();
  CHECK(ggml_backend_graph_compute(graph.backend.get(), plan) == GGML_STATUS_SUCCESS);
  std::vector<float> values(static_cast<size_t>(width * rows));
  ggml_backend_tensor_get(nodes.back(), values.data(), 0, ggml_nbytes(nodes.back()));
  return values;
}

} // namespace

TEST("kernels: nodes that follow each other are computed as one, with the same numbers") {
  needs_vectors();
  for (const auto& pattern : kPatterns)
    for (const int64_t width : {1, 37, 512, 8192, 8200})
      for (const int64_t rows : {1, 2, 7})
        for (const int threads : {1, 2, 3}) {
          calls().fused_ops = 0;
          const auto apart = computed(pattern, width, rows, threads, true);
          CHECK(calls().fused_ops == 0);
          CHECK(computed(pattern, width, rows, threads, false) == apart);
          CHECK((calls().fused_ops > 0) == (pattern.fused && width <= 8192));
        }
}

TEST("kernels: nodes are not computed as one where the result lies over rows that are still to be read") {
  needs_vectors();
  constexpr int64_t kWidth = 64, kCount = 5;
  std::vector<float> results[2];
  for (const bool over : {false, true}) {
    KernelGraph graph(1);
    ggml_context* context = graph.context.get();
    ggml_tensor* memory = ggml_new_tensor_2d(context, GGML_TYPE_F32, kWidth, kCount + 1);
    ggml_tensor* x = ggml_view_2d(context, memory, kWidth, kCount, memory->nb[1], 0);
    ggml_tensor* bias = ggml_new_tensor_1d(context, GGML_TYPE_F32, kWidth);
    ggml_tensor* result = ggml_gelu(context, ggml_add(context, x, bias));
    const auto values = random_values(kWidth * (kCount + 1), 5);
    calls().fused_ops = 0;
    results[over] = graph.run(result, [&] {
      ggml_backend_tensor_set(memory, values.data(), 0, ggml_nbytes(memory));
      ggml_backend_tensor_set(bias, values.data(), 0, ggml_nbytes(bias));
      if (over)
        result->data = static_cast<char*>(memory->data) + memory->nb[1];
    });
    CHECK((calls().fused_ops > 0) == !over);
  }
  CHECK(results[0] == results[1]);
}
