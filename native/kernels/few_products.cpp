#include "few_products.h"

#include "q8_few.h"

#ifdef VOXGATE_HAS_VECTORS

#include "attend_rows.h"
#include "gelu.h"
#include "kernel_calls.h"
#include "overlap.h"
#include "q8_tiles.h"
#include "row_chain.h"
#include "thread_memory.h"

#include <ggml-cpu-impl.h>
#include <ggml-cpu.h>
#include <ggml-impl.h>
#include <vec.h>

#include <algorithm>
#include <array>

namespace voxgate {
namespace {

constexpr int kMaxProducts = 4;
constexpr int kMaxSteps = 3;        // behind a product
constexpr int64_t kRowsAtOnce = 64; // which stay in the cache from step to step

// ggml's columns in eight bits.
using Columns = std::array<block_q8_0, kMaxBlocks * kFewColumns>;

// The tensor that `sum` adds to `before`. It is null when this sum is left to ggml.
const ggml_tensor* summand(const ggml_tensor* sum, const ggml_tensor* before) {
  const ggml_tensor* const other = sum->src[sum->src[0] == before ? 1 : 0];
  const bool is_row = other->ne[0] == sum->ne[0] && ggml_nrows(other) == 1;
  return is_dense(other) && (is_row || ggml_are_same_shape(other, sum)) ? other : nullptr;
}

// A product and the steps behind it. With `before` its columns are the result of that.
class Product {
 public:
  Product() = default;

  Product(const ggml_cgraph* graph, int first, const RowChain* before)
      : graph_(graph), before_(before), end_(first) {
    if (first >= graph->n_nodes || !is_taken(graph->nodes[first]) ||
        (before != nullptr && graph->nodes[first]->src[1] != before->result()))
      return;
    nodes_[0] = graph->nodes[first];
    count_ = 1;
    ends_[0] = end_ = first + 1;
    for (int at = next(end_); count_ <= kMaxSteps && at < graph->n_nodes; at = next(end_)) {
      if (result()->op == GGML_OP_SET_ROWS || !ggml_node_has_n_uses(graph, end_ - 1, 1) ||
          !is_step(graph->nodes[at]))
        break;
      nodes_[count_] = graph->nodes[at];
      ends_[count_++] = end_ = at + 1;
    }
    while (count_ > 1 && !is_safe())
      end_ = ends_[--count_ - 1];
    if (before != nullptr && before->reads(result()))
      count_ = 0;
  }

  bool is_any() const { return count_ > 0; }
  int end() const { return end_; } // the number of the node behind it
  int next() const { return next(end_); }
  const ggml_tensor* weights() const { return nodes_[0]->src[0]; }
  const ggml_tensor* columns() const { return nodes_[0]->src[1]; }

  const ggml_tensor* result() const { return nodes_[count_ - 1]; }

  bool reads(const ggml_tensor* tensor) const {
    if (reads_for_columns(tensor) || !is_apart(tensor, weights()))
      return true;
    for (int step = 1; step < count_; ++step)
      if (const ggml_tensor* other = read_by(step); other != nullptr && !is_apart(tensor, other))
        return true;
    return false;
  }

  bool touches(const ggml_tensor* tensor) const { return reads(tensor) || !is_apart(tensor, result()); }

  // Whether neither writes what the other one reads or writes.
  bool is_independent_of(const Product& before) const {
    return !before.touches(result()) && !reads(before.result());
  }

  void compute(const block_q8_0* columns, const ggml_compute_params* params) const {
    VOXGATE_COUNT_CALL(q8_gemm_few);
    const int64_t rows = weights()->ne[1], count = nodes_[0]->ne[1], blocks = weights()->ne[0] / kBlock;
    const FewColumns few(columns, blocks, count, blocks);
    const auto* const from = static_cast<const block_q8_0*>(weights()->data);
    const auto stride = static_cast<int64_t>(weights()->nb[1] / sizeof(block_q8_0));
    alignas(64) float values[kFewColumns][kRowsAtOnce];
    const int64_t end = rows * (params->ith + 1) / params->nth;
    for (int64_t row = rows * params->ith / params->nth; row < end; row += kRowsAtOnce) {
      const int64_t height = std::min(kRowsAtOnce, end - row);
      if (count_ == 1) {
        few.multiply(from + row * stride, stride, height, static_cast<float*>(result()->data) + row, rows);
        continue;
      }
      few.multiply(from + row * stride, stride, height, values[0], kRowsAtOnce);
      for (int64_t column = 0; column < count; ++column)
        for (int step = 1; step < count_; ++step)
          apply(step, column, row, static_cast<int>(height), values[column]);
    }
  }

 private:
  // The first node from `at` on that computes something.
  int next(int at) const {
    while (at < graph_->n_nodes && ggml_op_is_empty(graph_->nodes[at]->op))
      ++at;
    return at;
  }

  static bool is_taken(const ggml_tensor* node) {
    const ggml_tensor* const weights = node->src[0];
    const ggml_tensor* const columns = node->src[1];
    return node->op == GGML_OP_MUL_MAT && (node->flags & GGML_TENSOR_FLAG_COMPUTE) != 0 &&
           ggml_get_op_params_i32(node, 1) != GGML_HINT_SRC0_IS_HADAMARD && is_dense(node) &&
           is_dense(columns) && weights->type == GGML_TYPE_Q8_0 && weights->extra == nullptr &&
           weights->nb[0] == sizeof(block_q8_0) && ggml_nrows(weights) == weights->ne[1] &&
           ggml_nrows(columns) == columns->ne[1] &&
           is_few(weights->ne[1], columns->ne[1], weights->ne[0] / kBlock) &&
           !q8_tiles_take(columns->ne[1], weights->ne[0] / kBlock);
  }

  bool is_step(const ggml_tensor* node) const {
    if ((node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0 ||
        (node->src[0] != result() && (node->op != GGML_OP_ADD || node->src[1] != result())))
      return false;
    if (node->op == GGML_OP_SET_ROWS)
      return node->type == GGML_TYPE_F16 && node->nb[0] == sizeof(ggml_fp16_t) &&
             node->src[1]->type == GGML_TYPE_I64 && ggml_is_contiguous(node->src[1]) &&
             ggml_nrows(node->src[0]) == node->src[0]->ne[1] && node->ne[2] * node->ne[3] == 1;
    if (!is_dense(node) || !ggml_are_same_shape(node, result()))
      return false;
    switch (node->op) {
    case GGML_OP_ADD:
      return summand(node, result()) != nullptr;
    case GGML_OP_SCALE:
      return ggml_get_op_params_f32(node, 1) == 0; // no offset
    case GGML_OP_UNARY:
      return ggml_get_unary_op(node) == GGML_UNARY_OP_GELU;
    default:
      return false;
    }
  }

  // A thread writes results while another one reads the weights and columns. What is added it reads where it
  // writes.
  bool is_safe() const {
    if (reads_for_columns(result()) || !is_apart(result(), weights()))
      return false;
    for (int step = 1; step < count_; ++step)
      if (const ggml_tensor* other = read_by(step);
          other != nullptr && !is_apart(result(), other) &&
          (other->data != result()->data || !ggml_are_same_shape(other, result())))
        return false;
    return true;
  }

  // What a step reads besides the values.
  const ggml_tensor* read_by(int step) const {
    const ggml_tensor* const node = nodes_[step];
    if (node->op == GGML_OP_ADD)
      return summand(node, nodes_[step - 1]);
    return node->op == GGML_OP_SET_ROWS ? node->src[1] : nullptr;
  }

  bool reads_for_columns(const ggml_tensor* tensor) const {
    return before_ != nullptr ? before_->reads(tensor) : !is_apart(tensor, columns());
  }

  // Some values of a column, from `row` on. The last step writes the result.
  void apply(int step, int64_t column, int64_t row, int height, float* values) const {
    const ggml_tensor* const node = nodes_[step];
    const bool is_last = step + 1 == count_;
    if (node->op == GGML_OP_SET_ROWS) {
      const int64_t place = static_cast<const int64_t*>(node->src[1]->data)[column];
      GGML_ASSERT(place >= 0 && place < node->ne[1]);
      auto* const to = static_cast<char*>(node->data) + place * static_cast<int64_t>(node->nb[1]);
      ggml_cpu_fp32_to_fp16(values, reinterpret_cast<ggml_fp16_t*>(to) + row, height);
      return;
    }
    float* const to = is_last ? static_cast<float*>(node->data) + column * node->ne[0] + row : values;
    if (node->op == GGML_OP_ADD) {
      const ggml_tensor* const other = read_by(step);
      const int64_t stride = ggml_nrows(other) == 1 ? 0 : other->ne[0];
      ggml_vec_add_f32(height, to, values, static_cast<const float*>(other->data) + column * stride + row);
    } else if (node->op == GGML_OP_UNARY) {
      gelu_row(height, to, values);
    } else {
      if (is_last)
        std::copy_n(values, height, to);
      ggml_vec_scale_f32(height, to, ggml_get_op_params_f32(node, 0));
    }
  }

  const ggml_cgraph* graph_ = nullptr;
  const RowChain* before_ = nullptr;
  std::array<const ggml_tensor*, kMaxSteps + 1> nodes_{};
  std::array<int, kMaxSteps + 1> ends_{};
  int count_ = 0;
  int end_ = 0;
};

// Whether the thread that computes a head's part of these rows reads no other part of them as the head's.
bool has_same_heads(const ggml_tensor* heads, const ggml_tensor* rows) {
  return heads->data == rows->data && heads->type == rows->type && heads->nb[1] == rows->nb[1] &&
         heads->nb[2] == ggml_row_size(heads->type, heads->ne[0]) &&
         heads->ne[0] * heads->ne[2] == rows->ne[0];
}

// Products that do not depend on each other, with what their columns are made of before them, and behind them
// the attention that they are the queries, keys or values of.
class Group {
 public:
  Group(const ggml_cgraph* graph, int first, const RowChain* before, int threads) : before_(before) {
    for (int at = first; count_ < kMaxProducts; at = products_[count_++].next()) {
      const Product product(graph, at, before);
      const auto depends = [&product](const Product& other) { return !product.is_independent_of(other); };
      if (!product.is_any() || std::any_of(products_.begin(), products_.begin() + count_, depends))
        break;
      products_[count_] = product;
      end_ = product.end();
    }
    if (before != nullptr && !ggml_node_has_n_uses(graph, first - 1, count_))
      count_ = 0; // others read it, too
    if (const int at = is_any() ? products_[count_ - 1].next() : graph->n_nodes;
        at < graph->n_nodes && is_behind(graph->nodes[at], threads)) {
      attention_ = graph->nodes[at];
      end_ = at + 1;
    }
  }

  bool is_any() const { return count_ > 0; }
  int end() const { return end_; } // the number of the node behind it

  void compute(const ggml_compute_params* params) const {
    auto& columns = thread_block<Columns>();
    const ggml_tensor* rounded = nullptr;
    for (int i = 0; i < count_; ++i) {
      if (products_[i].columns() != rounded)
        round(products_[i].columns(), columns);
      rounded = products_[i].columns();
      products_[i].compute(columns.data(), params);
    }
    if (attention_ == nullptr)
      return;
    VOXGATE_COUNT_CALL(attention_behind_products);
    const int64_t rows = ggml_nrows(attention_);
    attend_rows(params, attention_, rows * params->ith / params->nth, rows * (params->ith + 1) / params->nth);
  }

 private:
  // Whether each thread can attend with the heads whose rows of the products it has computed, while the
  // others still compute.
  bool is_behind(const ggml_tensor* node, int threads) const {
    if (node->op != GGML_OP_FLASH_ATTN_EXT || (node->flags & GGML_TENSOR_FLAG_COMPUTE) == 0 ||
        !has_few_queries(node) || node->src[0]->ne[2] % threads != 0)
      return false;
    const int64_t rows = node->src[0]->ne[0] * node->src[0]->ne[2];
    return std::all_of(products_.begin(), products_.begin() + count_, [&](const Product& product) {
      return product.weights()->ne[1] == rows && !product.touches(node) &&
             std::all_of(node->src, node->src + GGML_MAX_SRC, [&](const ggml_tensor* source) {
               return source == nullptr || is_apart(source, product.result()) ||
                      has_same_heads(source, product.result());
             });
    });
  }

  void round(const ggml_tensor* tensor, Columns& columns) const {
    const int64_t width = tensor->ne[0];
    const auto from_float = ggml_get_type_traits_cpu(GGML_TYPE_Q8_0)->from_float;
    for (int64_t column = 0; column < tensor->ne[1]; ++column) {
      alignas(64) float values[kMaxBlocks * kBlock];
      const float* from = values;
      if (before_ != nullptr)
        before_->compute_row(column, values);
      else
        from = static_cast<const float*>(tensor->data) + column * width;
      from_float(from, columns.data() + column * (width / kBlock), width);
    }
  }

  const RowChain* before_;
  std::array<Product, kMaxProducts> products_;
  int count_ = 0;
  ggml_tensor* attention_ = nullptr;
  int end_ = 0;
};

} // namespace

int few_products(const ggml_cgraph* graph, int first, const RowChain& before,
                 const ggml_compute_params* params) {
  const bool follows = before.count() > 0;
  const Group group(graph, follows ? before.end() : first, follows ? &before : nullptr, params->nth);
  if (!group.is_any())
    return 0;
  if (group.end() - first > 1)
    VOXGATE_COUNT_CALL(few_products);
  group.compute(params);
  return group.end() - first;
}

} // namespace voxgate

#else

namespace voxgate {

int few_products(const ggml_cgraph*, int, const RowChain&, const ggml_compute_params*) {
  return 0;
}

} // namespace voxgate

#endif
