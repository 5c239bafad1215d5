#include "harness.h"
#include "kernel_graph.h"

#include <ggml-alloc.h>

#include <atomic>
#include <functional>
#include <vector>

// These tests compare graphs in which products of a few columns are computed together with what follows them
// (few_products.h) with the same graphs node by node.

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr int64_t kWidth = 128;
constexpr int64_t kHeads = 2;
constexpr int64_t kPlaces = 9; // of a cache

struct Inputs {
  Inputs(ggml_context* context, int64_t columns)
      : weights(ggml_new_tensor_2d(context, GGML_TYPE_Q8_0, kWidth, kWidth)),
        others(ggml_new_tensor_2d(context, GGML_TYPE_Q8_0, kWidth, kWidth)),
        x(ggml_new_tensor_2d(context, GGML_TYPE_F32, kWidth, columns)),
        carried(ggml_new_tensor_2d(context, GGML_TYPE_F32, kWidth, columns)),
        bias(ggml_new_tensor_1d(context, GGML_TYPE_F32, kWidth)),
        cache(ggml_new_tensor_2d(context, GGML_TYPE_F16, kWidth, kPlaces)),
        values(ggml_new_tensor_2d(context, GGML_TYPE_F16, kWidth, kPlaces)),
        mask(ggml_new_tensor_2d(context, GGML_TYPE_F16, kPlaces, columns)),
        places(ggml_new_tensor_1d(context, GGML_TYPE_I64, columns)) {
    for (ggml_tensor* tensor : {weights, others, x, carried, bias, cache, values, mask, places}) {
      ggml_set_input(tensor);
      ggml_set_output(tensor); // as weights and what is carried past, they stay when they have been read
    }
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
    for (ggml_tensor* tensor : {cache, values, mask})
      if (tensor->data != nullptr) {
        const auto floats = random_values(static_cast<size_t>(ggml_nelements(tensor)), seed++);
        std::vector<ggml_fp16_t> halves(floats.size());
        ggml_fp32_to_fp16_row(floats.data(), halves.data(), ggml_nelements(tensor));
        ggml_backend_tensor_set(tensor, halves.data(), 0, ggml_nbytes(tensor));
      }
    if (places->data == nullptr)
      return;
    for (int64_t i = 0; i < places->ne[0]; ++i) {
      const int64_t place = kPlaces - 1 - i;
      ggml_backend_tensor_set(places, &place, static_cast<size_t>(i) * sizeof(place), sizeof(place));
    }
  }

  ggml_tensor *weights, *others, *x, *carried, *bias, *cache, *values, *mask, *places;
};

using Nodes = std::vector<ggml_tensor*>;

Nodes normed(ggml_context* c, const Inputs& in) {
  auto* norm = ggml_norm(c, in.x, 1e-5F);
  auto* scaled = ggml_mul(c, norm, in.carried);
  return {norm, scaled, ggml_add(c, scaled, in.bias)};
}

// The attention of these queries to the places of a cache from `first` on.
ggml_tensor* attention(ggml_context* c, const Inputs& in, ggml_tensor* queries, bool masked, int64_t first) {
  const int64_t depth = kWidth / kHeads;
  const auto of_heads = [&](ggml_tensor* cache) {
    return ggml_view_3d(c, cache, depth, kPlaces - first, kHeads, cache->nb[1],
                        ggml_row_size(cache->type, depth), cache->nb[1] * static_cast<size_t>(first));
  };
  queries = ggml_permute(c, ggml_reshape_3d(c, queries, depth, kHeads, in.x->ne[1]), 0, 2, 1, 3);
  return ggml_flash_attn_ext(c, queries, of_heads(in.cache), of_heads(in.values), masked ? in.mask : nullptr,
                             0.5F, 0, 0);
}

// Attention to what has been written before and by this step.
Nodes attention_to_itself(ggml_context* c, const Inputs& in, bool masked, int64_t first) {
  Nodes nodes = normed(c, in);
  ggml_tensor* const columns = nodes.back();
  for (ggml_tensor* cache : {in.cache, in.values}) {
    nodes.push_back(ggml_mul_mat(c, in.weights, columns));
    nodes.push_back(ggml_add(c, nodes.back(), in.bias));
    nodes.push_back(ggml_set_rows(c, cache, nodes.back(), in.places));
  }
  nodes.push_back(ggml_mul_mat(c, in.others, columns));
  nodes.push_back(attention(c, in, nodes.back(), masked, first));
  return nodes;
}

// Nodes are computed together, which `taken` counts, where the result has memory of its own, and one by one
// where it lies over an input; the values are the same.
void check_only_apart(std::atomic<long>& taken, const std::vector<ggml_tensor * Inputs::*>& inputs,
                      const std::function<ggml_tensor*(ggml_context*, const Inputs&)>& nodes) {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  const auto computed = [&](ggml_tensor* Inputs::*over) {
    KernelGraph graph(2);
    const Inputs in(graph.context.get(), 2);
    ggml_tensor* const result = nodes(graph.context.get(), in);
    taken = 0;
    const auto values = graph.run(result, [&] {
      in.fill();
      if (over != nullptr)
        result->data = (in.*over)->data;
    });
    CHECK((taken > 0) == (over == nullptr));
    return values;
  };
  const auto expected = computed(nullptr);
  for (ggml_tensor* Inputs::*const over : inputs)
    CHECK(computed(over) == expected);
}

struct Pattern {
  // The nodes in the order in which they are computed; the last is the result.
  std::function<Nodes(ggml_context*, const Inputs&)> nodes;
  long groups = 1;     // how often several of them are computed together
  long attentions = 0; // how often attention is computed with them
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
    // a norm that two products need
    {[](ggml_context* c, const Inputs& in) {
      Nodes nodes = normed(c, in);
      auto* one = ggml_mul_mat(c, in.weights, nodes.back());
      auto* other = ggml_mul_mat(c, in.others, nodes.back());
      nodes.insert(nodes.end(), {one, other, ggml_mul(c, one, other)});
      return nodes;
    }},
    // a norm that something else needs, too
    {[](ggml_context* c, const Inputs& in) {
       Nodes nodes = normed(c, in);
       auto* product = ggml_mul_mat(c, in.weights, nodes.back());
       nodes.insert(nodes.end(), {product, ggml_mul(c, product, nodes.back())});
       return nodes;
     },
     0},
    // attention, in which a head needs what has been computed for it
    {[](ggml_context* c, const Inputs& in) { return attention_to_itself(c, in, true, 0); }, 1, 1},
    {[](ggml_context* c, const Inputs& in) { return attention_to_itself(c, in, false, 0); }, 1, 1},
    {[](ggml_context* c, const Inputs& in) {
       auto* product = ggml_mul_mat(c, in.weights, in.x);
       auto* queries = ggml_add(c, product, in.bias);
       return std::vector{product, queries, attention(c, in, queries, false, 0)};
     },
     1, 1},
    // attention to a part of the rows
    {[](ggml_context* c, const Inputs& in) { return attention_to_itself(c, in, true, 1); }},
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
        calls().attention_behind_products = 0;
        CHECK(computed(pattern, columns, threads, false) == apart);
        const bool with_attention = columns < 8 && kHeads % threads == 0; // threads have whole heads
        CHECK(calls().attention_behind_products == (with_attention ? pattern.attentions * threads : 0));
        CHECK(calls().few_products == (columns < 8 ? pattern.groups * threads : 0));
      }
}

TEST("kernels: products are not computed with what follows where the result lies over what they read") {
  check_only_apart(calls().few_products, {&Inputs::x, &Inputs::weights},
                   [](ggml_context* context, const Inputs& in) {
                     return ggml_add(context, ggml_mul_mat(context, in.weights, in.x), in.bias);
                   });
}

TEST("kernels: a product is not computed with the norm before it where it lies over what that reads") {
  check_only_apart(calls().few_products, {&Inputs::x}, [](ggml_context* context, const Inputs& in) {
    return ggml_mul_mat(context, in.weights, normed(context, in).back());
  });
}

TEST("kernels: attention is not computed with the products before it where it lies over what they read") {
  check_only_apart(calls().attention_behind_products, {&Inputs::x, &Inputs::weights},
                   [](ggml_context* context, const Inputs& in) {
                     ggml_tensor* queries = ggml_mul_mat(context, in.weights, normed(context, in).back());
                     return attention(context, in, queries, false, 0);
                   });
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
