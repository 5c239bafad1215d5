// Nodes of a graph that follow each other row by row, computed as one: a norm or a sum with a bias, and the
// products, sums and GELU behind it. Each row goes through all of them while it is in the cache, and the
// threads wait for each other once. ggml reads and writes the whole matrix for each node. The numbers are the
// same to the last bit. ggml-cpu.c asks before it computes a node.
#include "few_products.h"
#include "gelu.h"
#include "taken.h"

#include <ggml-cpu-impl.h>
#include <ggml-impl.h>
#include <vec.h>

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

constexpr int kMaxSteps = 4;
constexpr int64_t kMaxWidth = 8192;

struct Step {
  ggml_op op = GGML_OP_NONE;
  float epsilon = 0;                    // of a norm
  const ggml_tensor* operand = nullptr; // of a sum or product
  int64_t stride = 0;     // floats from one row of the operand to the next; 0 for one that all rows share
  bool is_number = false; // whether a row of a summand is one number
};

bool is_dense(const ggml_tensor* tensor) {
  return tensor->type == GGML_TYPE_F32 && ggml_is_contiguous(tensor);
}

// Whether a row of `out` may be written once the same row of `in` has been read.
bool may_follow(const ggml_tensor* out, const ggml_tensor* in) {
  const auto* const out_begin = static_cast<const char*>(out->data);
  const auto* const in_begin = static_cast<const char*>(in->data);
  const bool is_same = out_begin == in_begin && ggml_are_same_shape(out, in);
  return is_same || out_begin + ggml_nbytes(out) <= in_begin || in_begin + ggml_nbytes(in) <= out_begin;
}

class Chain {
 public:
  Chain(const ggml_cgraph* graph, int first) : graph_(graph), first_(first) {
    const ggml_tensor* const begin = graph->nodes[first];
    if ((begin->op != GGML_OP_NORM && begin->op != GGML_OP_ADD) || begin->ne[0] > kMaxWidth)
      return;
    input_ = begin->src[0];
    if (!is_dense(input_) || !ggml_are_same_shape(begin, input_))
      return;
    while (count_ < kMaxSteps && first + count_ < graph->n_nodes && is_next() && take(node(count_))) {
    }
    while (count_ > 1 && !is_safe())
      --count_;
  }

  int count() const { return count_; }

  void compute(const ggml_compute_params* params) const {
    const ggml_tensor* const result = node(count_ - 1);
    const int64_t width = result->ne[0], rows = ggml_nrows(result);
    const int64_t share = (rows + params->nth - 1) / params->nth;
    const int64_t end = std::min(rows, share * (params->ith + 1));
    alignas(64) float scratch[kMaxWidth];
    for (int64_t row = share * params->ith; row < end; ++row) {
      const float* from = static_cast<const float*>(input_->data) + row * width;
      for (int i = 0; i < count_; ++i) {
        float* const to = i + 1 < count_ ? scratch : static_cast<float*>(result->data) + row * width;
        apply(steps_[i], row, static_cast<int>(width), to, from);
        from = to;
      }
    }
  }

 private:
  const ggml_tensor* node(int step) const { return graph_->nodes[first_ + step]; }

  bool is_next() const {
    if (count_ == 0)
      return true;
    const ggml_op ops[] = {node(count_ - 1)->op, node(count_)->op};
    return ggml_can_fuse(graph_, first_ + count_ - 1, ops, 2);
  }

  bool take(const ggml_tensor* next) {
    if (!is_dense(next))
      return false;
    Step step{next->op};
    if (next->op == GGML_OP_NORM) {
      if (count_ > 0)
        return false;
      step.epsilon = ggml_get_op_params_f32(next, 0);
    } else if (next->op == GGML_OP_UNARY) {
      if (ggml_get_unary_op(next) != GGML_UNARY_OP_GELU)
        return false;
    } else if (next->op == GGML_OP_ADD || next->op == GGML_OP_MUL) {
      const ggml_tensor* const before = count_ == 0 ? input_ : node(count_ - 1);
      const ggml_tensor* const operand = next->src[next->src[0] == before ? 1 : 0];
      const bool is_full = ggml_are_same_shape(operand, next);
      const bool is_row = operand->ne[0] == next->ne[0] && ggml_nrows(operand) == 1;
      const bool is_column = next->op == GGML_OP_ADD && operand->ne[0] == 1 &&
                             operand->ne[1] == next->ne[1] && ggml_nrows(next) == next->ne[1];
      if (!is_dense(operand) || (!is_full && !is_row && !is_column))
        return false;
      step.operand = operand;
      step.stride = is_full ? next->ne[0] : is_column ? 1 : 0;
      step.is_number = !is_full && !is_row;
    } else {
      return false;
    }
    steps_[count_++] = step;
    return true;
  }

  bool is_safe() const {
    const ggml_tensor* const result = node(count_ - 1);
    return may_follow(result, input_) && std::all_of(steps_, steps_ + count_, [result](const Step& step) {
             return step.operand == nullptr || may_follow(result, step.operand);
           });
  }

  static void apply(const Step& step, int64_t row, int width, float* to, const float* from) {
    const float* const operand =
        step.operand == nullptr ? nullptr : static_cast<const float*>(step.operand->data) + row * step.stride;
    switch (step.op) {
    case GGML_OP_NORM: {
      float sum = 0;
      ggml_vec_sum_f32(width, &sum, from);
      const auto variance =
          static_cast<float>(ggml_vec_cvar_f32(width, to, from, sum / static_cast<float>(width)));
      ggml_vec_scale_f32(width, to, 1.0F / std::sqrt(variance + step.epsilon));
      return;
    }
    case GGML_OP_UNARY:
      return gelu_row(width, to, from);
    case GGML_OP_MUL:
      return ggml_vec_mul_f32(width, to, from, operand);
    default:
      return step.is_number ? ggml_vec_add1_f32(width, to, from, *operand)
                            : ggml_vec_add_f32(width, to, from, operand);
    }
  }

  const ggml_cgraph* graph_;
  int first_;
  const ggml_tensor* input_ = nullptr;
  Step steps_[kMaxSteps];
  int count_ = 0;
};

} // namespace
} // namespace voxgate

// Returns how many nodes from `first` on it has computed.
extern "C" int voxgate_fused(const ggml_cgraph* graph, int first, const ggml_compute_params* params) {
  if (const int products = voxgate::few_products(graph, first, params); products > 0)
    return products;
  const voxgate::Chain chain(graph, first);
  if (chain.count() < 2)
    return 0;
  VOXGATE_TAKEN(fused_ops);
  chain.compute(params);
  return chain.count();
}
