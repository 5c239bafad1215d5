#pragma once

#include <ggml.h>

#include <cstdint>

struct ggml_cgraph;
struct ggml_compute_params;

namespace voxgate {

// Nodes of a graph that follow each other row by row: a norm or a sum with a bias, and the products, sums and
// GELU behind it. Each row goes through all of them while it is in the cache, and the threads wait for each
// other once. ggml reads and writes the whole matrix for each node. The numbers are the same to the last bit.
class RowChain {
 public:
  static constexpr int64_t kMaxWidth = 8192;

  RowChain(const ggml_cgraph* graph, int first);

  int count() const { return count_; } // of the nodes, 0 where the first one begins no chain
  int end() const { return first_ + count_; }
  const ggml_tensor* result() const { return node(count_ - 1); }

  // Computes the rows that fall to a thread.
  void compute(const ggml_compute_params* params) const;
  void compute_row(int64_t row, float* to) const;

  // Whether computing the rows reads memory of `tensor`.
  bool reads(const ggml_tensor* tensor) const;

 private:
  static constexpr int kMaxSteps = 4;

  struct Step {
    ggml_op op = GGML_OP_NONE;
    float epsilon = 0;                    // of a norm
    const ggml_tensor* operand = nullptr; // of a sum or product
    int64_t stride = 0;     // floats from one row of the operand to the next; 0 for one that all rows share
    bool is_number = false; // whether a row of a summand is one number
  };

  const ggml_tensor* node(int step) const;
  bool is_next() const;
  bool take(const ggml_tensor* next);
  bool is_safe() const;
  static void apply(const Step& step, int64_t row, int width, float* to, const float* from);

  const ggml_cgraph* graph_;
  int first_;
  const ggml_tensor* input_ = nullptr;
  Step steps_[kMaxSteps];
  int count_ = 0;
};

} // namespace voxgate
