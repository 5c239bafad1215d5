#include "harness.h"
#include "kernel_graph.h"

#include <ggml-alloc.h>

#include <functional>
#include <vector>

// These tests compare graphs in which products of a few columns are computed together with what follows them
// (few_products.h) with the same graphs node by node.

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr int64_t kWidth = 128;
constexpr int64_t kPlaces = 9; // of a cache

struct Inputs {
  Inputs(ggml_context* context, int64_t columns)
      : weights(ggml_new_tensor_2d(context, GGML_TYPE_Q8_0, kWidth, kWidth)),
        others(ggml_new_tensor_2d(context, GGML_TYPE_Q8_0, kWidth, kWidth)),
        x(ggml_new_tensor_2d(context, GGML_TYPE_F32, kWidth, columns)),
        carried(ggml_new_tensor_2d(context, GGML_TYPE_F32, kWidth, columns)),
        bias(ggml_new_tensor_1d(context, GGML_TYPE_F32, kWidth)),
        cache(ggml_new_tensor_2d(context, GGML_TYPE_F16, kWidth, kPlaces)),
        places(ggml_new_tensor_1d(context, GGML_TYPE_I64, columns)) {
    for (ggml_tensor* tensor : {weights, others, x, carried, bias, cache, places})
      ggml_set_input(tensor);
    for (ggml_tensor* tensor : {weights, others})
      ggml_set_output(tensor); // as those of a model they stay when they have been read
  }

  void fill() const {
    unsigned seed = 1;
    for (ggml_tensor* tensor : {x, carried, bias})
      if (tensor->data != nullptr) { // the graph has it
        const auto values = random_values(static_cast<size_t>(ggml_nelements(tensor)), seed++);
        ggml_backend_tensor_set(tensor, values.data(), 0, ggml_nbytes(tensor));
      }
    for (ggml_tensor* tensor : {weights, others})
      if (tensor->data != nullptr) {
        const auto values = random_values(kWidth * kWidth, seed++);
        std::vector<uint8_t> bytes(ggml_nbytes(tensor));
        ggml_quantize_chunk(GGML_TYPE_Q8_0, values.data(), bytes.data(), 0, kWidth, kWidth, nullptr);
        ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
      }
    if (places->data == nullptr)
      return;
    ggml_backend_tensor_memset(cache, 0, 0, ggml_nbytes(cache));
    for (int64_t i = 0; i < places->ne[0]; ++i) {
      const int64_t place = kPlaces - 1 - i;
      ggml_backend_tensor_set(places, &place, static_cast<size_t>(i) * sizeof(place), sizeof(place));
    }
  }

  ggml_tensor *weights, *others, *x, *carried, *bias, *cache, *places;
};

struct Pattern {
  // The nodes in the order in which they are computed; the last is the result.
  std::function<std::vector<ggml_tensor*>(ggml_context*, const Inputs&)> nodes;
  long groups = 1; // how often several of them are computed together
};

const std::vector<Pattern> kPatterns{
    // a bias and GELU
    {[](ggml_context* c, const Inputs& in) {
      auto* product = ggml_mul_mat(c, in.weights, in.x);
      auto* sum = ggml_add(c, product, in.bias);
      return std::vector{product, sum, ggml_gelu(c, sum)};
    }},
    // a result in the place of what is carried past
    {[](ggml_context* c, const Inputs& in) {
      auto* doubled = ggml_scale(c, in.carried, 2); // its memory is free for the result
      auto* product = ggml_mul_mat(c, in.weights, in.x);
      auto* sum = ggml_add(c, product, in.bias);
      return std::vector{doubled, product, sum, ggml_add(c, doubled, sum)};
    }},
    // rows of a cache, and another product that does not depend on them
    {[](ggml_context* c, const Inputs& in) {
      auto* keys = ggml_mul_mat(c, in.weights, in.x);
      auto* scaled = ggml_scale(c, keys, 0.25F);
      auto* kept = ggml_set_rows(c, in.cache, scaled, in.places);
      auto* queries = ggml_mul_mat(c, in.others, in.x);
      auto* sum = ggml_add(c, queries, in.bias);
      auto* read = ggml_cast(c, ggml_view_2d(c, kept, kWidth, in.x->ne[1], kept->nb[1], 0), GGML_TYPE_F32);
      return std::vector{keys, scaled, kept, queries, sum, ggml_add(c, sum, read)};
    }},
    // a product of a product, whose columns are not there before all threads have done their part
    {[](ggml_context* c, const Inputs& in) {
       auto* product = ggml_mul_mat(c, in.weights, in.x);
       auto* sum = ggml_add(c, product, in.bias);
       auto* next = ggml_mul_mat(c, in.others, sum);
       return std::vector{product, sum, next, ggml_scale(c, next, 0.5F)};
     },
     2},
    // more steps than are computed with a product
    {[](ggml_context* c, const Inputs& in) {
      std::vector<ggml_tensor*> nodes{ggml_mul_mat(c, in.weights, in.x)};
      for (int i = 0; i < 5; ++i)
        nodes.push_back(ggml_add(c, nodes.back(), in.bias));
      return nodes;
    }},
    // more products than are computed together
    {[](ggml_context* c, const Inputs& in) {
       std::vector<ggml_tensor*> nodes;
       std::vector<ggml_tensor*> sums;
       for (int i = 0; i < 5; ++i) {
         nodes.push_back(ggml_mul_mat(c, i % 2 == 0 ? in.weights : in.others, in.x));
         nodes.push_back(ggml_add(c, nodes.back(), in.bias));
         sums.push_back(nodes.back());
       }
       nodes.push_back(sums[0]);
       for (size_t i = 1; i < sums.size(); ++i)
         nodes.push_back(ggml_mul(c, nodes.back(), sums[i]));
       return nodes;
     },
     2},
    // a product that two others need
    {[](ggml_context* c, const Inputs& in) {
       auto* product = ggml_mul_mat(c, in.weights, in.x);
       return std::vector{product, ggml_mul(c, ggml_gelu(c, product), product)};
     },
     0},
};

std::vector<float> computed(const Pattern& pattern, int64_t columns, int threads, bool apart) {
  KernelGraph graph(threads);
  const Inputs inputs(graph.context.get(), columns);
  const auto nodes = pattern.nodes(graph.context.get(), inputs);
  ggml_cgraph* plan = ggml_new_graph(graph.context.get());
  for (ggml_tensor* node : nodes) {
    if (apart)
      ggml_set_output(node); // what a caller may read is computed by itself
    ggml_build_forward_expand(plan, node);
  }
  ggml_set_output(nodes.back());
  const ggml_gallocr_ptr memory(ggml_gallocr_new(ggml_backend_get_default_buffer_type(graph.backend.get())));
  CHECK(ggml_gallocr_alloc_graph(memory.get(), plan));
  inputs.fill();
  CHECK(ggml_backend_graph_compute(graph.backend.get(), plan) == GGML_STATUS_SUCCESS);
  std::vector<float> values(static_cast<size_t>(ggml_nelements(nodes.back())));
  ggml_backend_tensor_get(nodes.back(), values.data(), 0, ggml_nbytes(nodes.back()));
  return values;
}

} // namespace

TEST("kernels: products of a few columns are computed with what follows them, with the same numbers") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  for (const auto& pattern : kPatterns)
    for (const int64_t columns : {1, 3, 7, 8})
      for (const int threads : {1, 2, 3}) {
        const auto apart = computed(pattern, columns, threads, true);
        calls().few_products = 0;
        CHECK(computed(pattern, columns, threads, false) == apart);
        CHECK(calls().few_products == (columns < 8 ? pattern.groups * threads : 0));
      }
}

TEST("kernels: products are not computed with what follows where the result lies over what they read") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  std::vector<float> expected;
  for (const int over : {0, 1, 2}) {
    KernelGraph graph(2);
    ggml_context* context = graph.context.get();
    const Inputs in(context, 2);
    ggml_tensor* result = ggml_add(context, ggml_mul_mat(context, in.weights, in.x), in.bias);
    calls().few_products = 0;
    const auto values = graph.run(result, [&] {
      in.fill();
      if (over > 0)
        result->data = (over == 1 ? in.x : in.weights)->data;
    });
    CHECK((calls().few_products > 0) == (over == 0));
    if (over == 0)
      expected = values;
    CHECK(values == expected);
  }
}

TEST("kernels: products of several matrices in one node are those of each of them") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  constexpr int64_t kMatrices = 5;
  const auto weights = random_values(kWidth * kWidth, 1);
  std::vector<uint8_t> bytes(ggml_row_size(GGML_TYPE_Q8_0, kWidth) * kWidth);
  ggml_quantize_chunk(GGML_TYPE_Q8_0, weights.data(), bytes.data(), 0, kWidth, kWidth, nullptr);
  for (const int64_t columns : {3, 20}) {
    const auto size = static_cast<size_t>(kWidth * columns);
    const auto x = random_values(size * kMatrices, 2);
    const auto product = [&](const float* from, int64_t matrices, int threads) {
      KernelGraph graph(threads);
      ggml_context* context = graph.context.get();
      ggml_tensor* a = ggml_new_tensor_2d(context, GGML_TYPE_Q8_0, kWidth, kWidth);
      ggml_tensor* b = ggml_new_tensor_3d(context, GGML_TYPE_F32, kWidth, columns, matrices);
      return graph.run(ggml_mul_mat(context, a, b), [&] {
        ggml_backend_tensor_set(a, bytes.data(), 0, bytes.size());
        ggml_backend_tensor_set(b, from, 0, ggml_nbytes(b));
      });
    };
    const auto all = product(x.data(), kMatrices, 3);
    for (size_t i = 0; i < kMatrices; ++i) {
      const std::vector<float> one(all.begin() + static_cast<ptrdiff_t>(i * size),
                                   all.begin() + static_cast<ptrdiff_t>((i + 1) * size));
      CHECK(one == product(x.data() + i * size, 1, 1));
    }
  }
}
