#include "row_chain.h"

#include "gelu.h"
#include "overlap.h"

#include <ggml-cpu-impl.h>
#include <ggml-impl.h>
#include <vec.h>

#include <algorithm>
#include <cmath>

namespace voxgate {
namespace {

// Whether a row of `out` may be written once the same row of `in` has been read.
bool may_follow(const ggml_tensor* out, const ggml_tensor* in) {
  return is_apart(out, in) || (out->data == in->data && ggml_are_same_shape(out, in));
}

} // namespace

RowChain::RowChain(const ggml_cgraph* graph, int first) : graph_(graph), first_(first) {
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

void RowChain::compute(const ggml_compute_params* params) const {
  const int64_t width = result()->ne[0], rows = ggml_nrows(result());
  const int64_t share = (rows + params->nth - 1) / params->nth;
  const int64_t end = std::min(rows, share * (params->ith + 1));
  for (int64_t row = share * params->ith; row < end; ++row)
    compute_row(row, static_cast<float*>(result()->data) + row * width);
}

void RowChain::compute_row(int64_t row, float* result) const {
  alignas(64) float scratch[kMaxWidth];
  const int64_t width = input_->ne[0];
  const float* from = static_cast<const float*>(input_->data) + row * width;
  for (int i = 0; i < count_; ++i) {
    float* const to = i + 1 < count_ ? scratch : result;
    apply(steps_[i], row, static_cast<int>(width), to, from);
    from = to;
  }
}

bool RowChain::reads(const ggml_tensor* tensor) const {
  return !is_apart(tensor, input_) || std::any_of(steps_, steps_ + count_, [tensor](const Step& step) {
    return step.operand != nullptr && !is_apart(tensor, step.operand);
  });
}

const ggml_tensor* RowChain::node(int step) const {
  return graph_->nodes[first_ + step];
}

bool RowChain::is_next() const {
  if (count_ == 0)
    return true;
  const ggml_op ops[] = {node(count_ - 1)->op, node(count_)->op};
  return ggml_can_fuse(graph_, first_ + count_ - 1, ops, 2);
}

bool RowChain::take(const ggml_tensor* next) {
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
    const bool is_column = next->op == GGML_OP_ADD && operand->ne[0] == 1 && operand->ne[1] == next->ne[1] &&
                           ggml_nrows(next) == next->ne[1];
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

bool RowChain::is_safe() const {
  return may_follow(result(), input_) && std::all_of(steps_, steps_ + count_, [this](const Step& step) {
           return step.operand == nullptr || may_follow(result(), step.operand);
         });
}

void RowChain::apply(const Step& step, int64_t row, int width, float* to, const float* from) {
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

} // namespace voxgate
