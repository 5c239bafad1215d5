#include "harness.h"
#include "kernel_graph.h"

#include "kernels/unmasked_attention.h"

#include <ggml.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr int64_t kHeads = 5;

std::vector<ggml_fp16_t> halves(const std::vector<float>& values) {
  std::vector<ggml_fp16_t> result(values.size());
  ggml_fp32_to_fp16_row(values.data(), result.data(), static_cast<int64_t>(values.size()));
  return result;
}

struct Attention {
  int64_t queries;
  int64_t positions;
  int64_t width = 64;
  std::vector<float> offsets = {}; // of the score of each position; all rows of the mask
  std::vector<float> q = random_values(static_cast<size_t>(width * queries * kHeads), 1);
  std::vector<float> k = random_values(static_cast<size_t>(width * positions * kHeads), 2);
  std::vector<float> v = random_values(static_cast<size_t>(width * positions * kHeads), 3);

  // Runs flash attention as the decoder and the encoder ask for it.
  std::vector<float> computed(int threads) const {
    KernelGraph graph(threads);
    auto* context = graph.context.get();
    ggml_tensor* query = ggml_new_tensor_3d(context, GGML_TYPE_F32, width, queries, kHeads);
    ggml_tensor* keys = ggml_new_tensor_3d(context, GGML_TYPE_F16, width, positions, kHeads);
    ggml_tensor* values = ggml_new_tensor_3d(context, GGML_TYPE_F16, width, positions, kHeads);
    ggml_tensor* mask =
        offsets.empty() ? nullptr : ggml_new_tensor_2d(context, GGML_TYPE_F16, positions, queries);
    ggml_tensor* attention = ggml_flash_attn_ext(context, query, keys, values, mask, kScale, 0, 0);
    if (mask != nullptr)
      tell_same_rows(attention);
    const auto row_of_mask = halves(offsets);
    return graph.run(attention, [&] {
      if (mask != nullptr)
        for (int64_t row = 0; row < queries; ++row)
          ggml_backend_tensor_set(mask, row_of_mask.data(), static_cast<size_t>(row) * mask->nb[1],
                                  mask->nb[1]);
      ggml_backend_tensor_set(query, q.data(), 0, q.size() * sizeof(float));
      ggml_backend_tensor_set(keys, halves(k).data(), 0, k.size() * sizeof(ggml_fp16_t));
      ggml_backend_tensor_set(values, halves(v).data(), 0, v.size() * sizeof(ggml_fp16_t));
    });
  }

  // Computes the largest difference to softmax(q k) v.
  double worst_difference(int threads) const {
    const auto result = computed(threads);
    double worst = 0;
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t query = 0; query < queries; ++query) {
        std::vector<double> sums(width, 0);
        double total = 0;
        for (int64_t position = 0; position < positions; ++position) {
          double score = 0;
          for (int64_t i = 0; i < width; ++i)
            score += at(q, head * queries + query, i) * at(k, head * positions + position, i);
          const double offset = offsets.empty() ? 0 : offsets[static_cast<size_t>(position)];
          const double weight = std::exp(score * kScale + offset);
          total += weight;
          for (int64_t i = 0; i < width; ++i)
            sums[static_cast<size_t>(i)] += weight * at(v, head * positions + position, i);
        }
        for (int64_t i = 0; i < width; ++i)
          worst = std::max(
              worst, std::abs(sums[static_cast<size_t>(i)] / total - at(result, query * kHeads + head, i)));
      }
    return worst;
  }

 private:
  static constexpr float kScale = 0.125F;
  double at(const std::vector<float>& rows, int64_t row, int64_t i) const {
    return rows[static_cast<size_t>(row * width + i)];
  }
};

} // namespace

TEST("kernels: attention of one query is the same to the last bit on any number of threads") {
  const long before = calls().attend_rows;
  for (const int64_t positions : {512, 640, 1500}) { // from 512 on ggml divides the positions among threads
    const Attention attention{1, positions};
    const auto alone = attention.computed(1);
    CHECK(attention.worst_difference(1) < 5e-3);
    for (const int threads : {2, 3, 4, 5, 7})
      CHECK(attention.computed(threads) == alone);
  }
  CHECK(calls().attend_rows > before);
}

namespace {

using Shapes = std::initializer_list<std::pair<int64_t, int64_t>>; // queries and positions

// Lengths around those of a tile, a block of queries and a block of keys, and Whisper's own.
const Shapes kManyQueries{{64, 64}, {65, 31}, {97, 129}, {130, 1}, {320, 333}, {70, 1500}};

void check(const Shapes& shapes, double tolerance) {
  for (const auto& [queries, positions] : shapes) {
    Attention attention{queries, positions};
    const auto plain = attention.computed(1);
    // The last positions count several times, but for the very last, which is none.
    std::vector<float> offsets(static_cast<size_t>(positions), 0);
    std::fill(offsets.begin() + positions / 2, offsets.end(), 2.5F);
    if (positions > 1)
      offsets.back() = -INFINITY;
    for (const auto& with : {std::vector<float>(), offsets}) {
      attention.offsets = with;
      CHECK(attention.worst_difference(2) < tolerance);
      const auto alone = attention.computed(1);
      CHECK((alone == plain) == (with.empty() || positions == 1));
      for (const int threads : {2, 3, 5})
        CHECK(attention.computed(threads) == alone);
    }
  }
}

} // namespace

TEST("kernels: attention of many queries is ours, in floats") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  const long before = calls().attention_in_floats;
  check(kManyQueries, 1e-3);
  CHECK(calls().attention_in_floats > before);
}

TEST("kernels: attention of many queries is ours, on AMX tiles") {
  needs_amx();
  const long before = calls().attention_on_tiles;
  check(kManyQueries, 2e-2);
  CHECK(calls().attention_on_tiles > before);
}

TEST("kernels: attention of many queries is ours, in the bfloat16 of AVX-512") {
  needs_bfloat16();
  const MostBfloat16 without_tiles(Bfloat16::vectors);
  const long before = calls().attention_on_vectors;
  check(kManyQueries, 2e-2);
  CHECK(calls().attention_on_vectors > before);
}

TEST("kernels: attention in the bfloat16 of AVX-512 is that on AMX tiles") {
  needs_amx();
  for (const auto& [queries, positions] : kManyQueries) {
    const Attention attention{queries, positions};
    const auto on_tiles = attention.computed(2);
    const MostBfloat16 without_tiles(Bfloat16::vectors);
    const auto on_vectors = attention.computed(2);
    for (size_t i = 0; i < on_tiles.size(); ++i)
      CHECK(std::abs(on_tiles[i] - on_vectors[i]) < 1e-3);
  }
}

TEST("kernels: attention of a few queries is ours") {
  needs_vectors();
  const long before = calls().attention_of_few;
  check({{1, 1}, {1, 600}, {2, 17}, {5, 320}, {6, 1500}, {7, 511}, {15, 64}}, 1e-3);
  CHECK(calls().attention_of_few > before);
}

TEST("kernels: attention of other shapes than Whisper's is ggml's, with the processor's own instruction") {
  const long before = calls().halves_to_floats;
  const auto many = [] {
    return calls().attention_in_floats + calls().attention_on_tiles + calls().attention_on_vectors;
  };
  const long ours = many();
  const Attention attention{100, 130, 32};
  CHECK(attention.worst_difference(2) < 5e-3);
  CHECK(calls().halves_to_floats > before);
  CHECK(many() == ours);
}
