#include "harness.h"
#include "kernel_graph.h"

#include "backends/cpu_library.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

// These tests compare ggml's graphs on the CPU, with the kernels that stand in front of its own, with plain
// loops.

using namespace voxgate;
using namespace voxgate::test;

namespace {

// Gives weights back as they are after q8_0.
std::vector<float> restored(const std::vector<uint8_t>& bytes, size_t count) {
  std::vector<float> values(count);
  ggml_get_type_traits(GGML_TYPE_Q8_0)->to_float(bytes.data(), values.data(), static_cast<int64_t>(count));
  return values;
}

std::vector<uint8_t> quantized_weights(const std::vector<float>& values, int64_t width) {
  const auto rows = static_cast<int64_t>(values.size()) / width;
  std::vector<uint8_t> bytes(ggml_row_size(GGML_TYPE_Q8_0, width) * static_cast<size_t>(rows));
  ggml_quantize_chunk(GGML_TYPE_Q8_0, values.data(), bytes.data(), 0, rows, width, nullptr);
  return bytes;
}

// Gives values back as they are after the rounding of activations, which differs a little from that of
// weights.
std::vector<float> rounded_activations(const std::vector<float>& values) {
  KernelGraph graph(1);
  ggml_context* context = graph.context.get();
  ggml_tensor* input = ggml_new_tensor_1d(context, GGML_TYPE_F32, static_cast<int64_t>(values.size()));
  return graph.run(ggml_cast(context, ggml_cast(context, input, GGML_TYPE_Q8_0), GGML_TYPE_F32),
                   [&] { ggml_backend_tensor_set(input, values.data(), 0, values.size() * sizeof(float)); });
}

struct Product {
  int64_t m; // rows of weights
  int64_t n; // columns of activations
  int64_t k; // depth
};

std::vector<float> product(const Product& shape, const std::vector<uint8_t>& weights,
                           const std::vector<float>& activations, int threads) {
  KernelGraph graph(threads);
  ggml_tensor* a = ggml_new_tensor_2d(graph.context.get(), GGML_TYPE_Q8_0, shape.k, shape.m);
  ggml_tensor* b = ggml_new_tensor_2d(graph.context.get(), GGML_TYPE_F32, shape.k, shape.n);
  return graph.run(ggml_mul_mat(graph.context.get(), a, b), [&] {
    ggml_backend_tensor_set(a, weights.data(), 0, weights.size());
    ggml_backend_tensor_set(b, activations.data(), 0, activations.size() * sizeof(float));
  });
}

// Computes the largest difference to the plain product of the rounded values, as a part of the largest
// output.
double worst_difference(const Product& shape, const std::vector<float>& a, const std::vector<float>& b,
                        const std::vector<float>& computed) {
  double worst = 0;
  double largest = 0;
  for (int64_t column = 0; column < shape.n; ++column) {
    for (int64_t row = 0; row < shape.m; ++row) {
      double expected = 0;
      for (int64_t i = 0; i < shape.k; ++i)
        expected += static_cast<double>(a[static_cast<size_t>(row * shape.k + i)]) *
                    static_cast<double>(b[static_cast<size_t>(column * shape.k + i)]);
      const double got = computed[static_cast<size_t>(column * shape.m + row)];
      worst = std::max(worst, std::abs(got - expected));
      largest = std::max(largest, std::abs(expected));
    }
  }
  return worst / largest;
}

double worst_difference(const Product& shape, const std::vector<uint8_t>& weights, int threads,
                        float scale = 1) {
  const auto activations = random_values(static_cast<size_t>(shape.n * shape.k), 2, scale);
  return worst_difference(shape, restored(weights, static_cast<size_t>(shape.m * shape.k)),
                          rounded_activations(activations), product(shape, weights, activations, threads));
}

// Gives values back as they are after bfloat16: the upper half of a float, rounded to even.
std::vector<float> halved(std::vector<float> values) {
  for (float& value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    value = std::bit_cast<float>((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000U);
  }
  return values;
}

std::vector<uint8_t> random_weights(const Product& shape, float scale = 1) {
  return quantized_weights(random_values(static_cast<size_t>(shape.m * shape.k), 1, scale), shape.k);
}

double worst_difference(const Product& shape, int threads, float scale = 1) {
  return worst_difference(shape, random_weights(shape, scale), threads, scale);
}

// Integers are multiplied exactly, so only the order in which the blocks are added makes a difference.
constexpr double kTolerance = 1e-5;

} // namespace

TEST("kernels: they are those of the level that the build asks for") {
  std::string wanted = VOXGATE_TEST_LEVEL;
  if (wanted == "native")
    throw Skipped{"the build is for this machine, whichever level that is"};
  if (wanted == "all")
    wanted = setting("VOXGATE_TEST_LEVEL", "which level this processor has");
  const auto level = cpu_level();
  CHECK(level == wanted || ((level == "amx" || level == "avx512_bf16") && wanted == "avx512_vnni"));
}

TEST("kernels: quantized products are ours") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  const long many = calls().q8_gemm;
  const long few = calls().q8_gemm_few;
  worst_difference({64, 16, 512}, 2);
  CHECK(calls().q8_gemm == many + 2 && calls().q8_gemm_few == few); // once for each thread
  worst_difference({64, 1, 512}, 2);
  CHECK(calls().q8_gemm == many + 2 && calls().q8_gemm_few == few + 2);
}

TEST("kernels: quantized products are those of plain loops for every shape") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  for (const int64_t m : {1, 16, 31, 32, 33, 47, 64, 95, 160})
    for (const int64_t n : {1, 2, 5, 7, 8, 9, 12, 13, 50})
      for (const int64_t k : {32, 64, 96, 512})
        CHECK(worst_difference({m, n, k}, 2) < kTolerance);
}

TEST("kernels: quantized products are the same to the last bit on any number of threads") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  for (const Product shape : {Product{512, 1, 512}, Product{96, 40, 256}, Product{33, 9, 64}}) {
    const auto weights = random_weights(shape);
    const auto activations = random_values(static_cast<size_t>(shape.n * shape.k), 2);
    const auto alone = product(shape, weights, activations, 1);
    for (const int threads : {2, 3, 4, 7})
      CHECK(product(shape, weights, activations, threads) == alone);
  }
}

TEST("kernels: quantized products are right with more columns than are prepared at once, and deeper than the "
     "kernel goes") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  CHECK(worst_difference({32, 700, 2048}, 2) < kTolerance);
  CHECK(worst_difference({64, 12, 8192}, 2) < kTolerance);
  CHECK(worst_difference({64, 12, 8192 + 32}, 2) < kTolerance);
}

TEST("kernels: quantized products are right at the ends of the range of a scale") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none);
  for (const float scale : {1e-3F, 1e3F})
    CHECK(worst_difference({64, 16, 512}, 2, scale) < kTolerance);
  const Product shape{64, 16, 64};
  const auto nothing = quantized_weights(std::vector<float>(64 * 64, 0), 64);
  const auto computed = product(shape, nothing, std::vector<float>(16 * 64, 1), 2);
  CHECK(std::ranges::all_of(computed, [](float value) { return value == 0; }));
}

TEST("kernels: a quantized weight may be -128, as programs other than ggml write it") {
  needs_vectors();
  const MostBfloat16 without(Bfloat16::none); // its tiles are of bfloat16
  constexpr int64_t kBlockBytes = 2 + 32;     // a 16-bit scale and 32 integers
  for (const int64_t n : {1, 3, 7, 8, 20})
    for (const int64_t count : {1, 2, 32}) {
      const Product shape{64, n, 2048};
      auto weights = random_weights(shape);
      for (auto block = weights.begin(); block != weights.end(); block += kBlockBytes)
        std::fill_n(block + 2, count, uint8_t{0x80});
      const std::vector<float> ones(static_cast<size_t>(n * shape.k), 1); // which become 127
      CHECK(worst_difference(shape, restored(weights, static_cast<size_t>(shape.m * shape.k)),
                             rounded_activations(ones), product(shape, weights, ones, 2)) < kTolerance);
      CHECK(worst_difference(shape, weights, 2) < kTolerance);
    }
}

TEST("kernels: products of a few columns on AMX tiles are those of plain loops for every shape") {
  needs_amx();
  const long before = calls().q8_tiles;
  int products = 0;
  for (const int64_t m : {32, 33, 47, 64, 95, 160})
    for (const int64_t n : {3, 4, 5, 8, 11})
      for (const int64_t k : {64, 128, 512, 576, 2048}) {
        CHECK(worst_difference({m, n, k}, 2) < kTolerance);
        ++products;
      }
  CHECK(calls().q8_tiles == before + 2 * products); // once for each thread
  for (const Product shape : {Product{64, 2, 64}, Product{64, 3, 96}, Product{64, 3, 8192 + 64}})
    CHECK(worst_difference(shape, 2) < kTolerance);
  CHECK(calls().q8_tiles == before + 2 * products); // it is not made for those
}

TEST("kernels: a column has the same product on AMX tiles to the last bit, whatever is beside it") {
  needs_amx();
  const auto weights = random_weights({100, 3, 512});
  const auto activations = random_values(11 * 512, 2);
  const auto alone = product({100, 3, 512}, weights, {activations.begin(), activations.begin() + 3 * 512}, 1);
  for (const int64_t n : {5, 11})
    for (const int threads : {1, 2, 3, 7}) {
      const auto among =
          product({100, n, 512}, weights, {activations.begin(), activations.begin() + n * 512}, threads);
      CHECK(std::equal(alone.begin(), alone.end(), among.begin()));
    }
}

TEST("kernels: products on AMX tiles are those of bfloat16 for every shape") {
  needs_amx();
  const long before = calls().amx_gemm;
  int products = 0;
  for (const int64_t m : {32, 33, 47, 64, 95})
    for (const int64_t n : {12, 16, 17, 31, 32, 33, 50})
      for (const int64_t k : {32, 64, 96, 512}) {
        const Product shape{m, n, k};
        const auto weights = random_weights(shape);
        const auto activations = random_values(static_cast<size_t>(n * k), 2);
        CHECK(worst_difference(shape, halved(restored(weights, static_cast<size_t>(m * k))),
                               halved(activations), product(shape, weights, activations, 2)) < kTolerance);
        ++products;
      }
  CHECK(calls().amx_gemm == before + 2 * products); // once for each thread
}

TEST("kernels: products on AMX tiles are nearer to the exact ones than those of 8-bit activations") {
  needs_amx();
  const Product shape{256, 100, 1024};
  const auto weights = random_weights(shape);
  const auto activations = random_values(static_cast<size_t>(shape.n * shape.k), 2);
  const auto exact = restored(weights, static_cast<size_t>(shape.m * shape.k));
  const double tiles = worst_difference(shape, exact, activations, product(shape, weights, activations, 2));
  const MostBfloat16 without(Bfloat16::none);
  const double integers =
      worst_difference(shape, exact, activations, product(shape, weights, activations, 2));
  CHECK(tiles < integers);
}

TEST("kernels: products on AMX tiles are the same to the last bit on any number of threads") {
  needs_amx();
  for (const Product shape : {Product{96, 40, 256}, Product{33, 12, 64}, Product{64, 400, 4096}}) {
    const auto weights = random_weights(shape);
    const auto activations = random_values(static_cast<size_t>(shape.n * shape.k), 2);
    const auto alone = product(shape, weights, activations, 1);
    for (const int threads : {2, 3, 7})
      CHECK(product(shape, weights, activations, threads) == alone);
  }
}

TEST("kernels: products that tiles are not made for are computed without them") {
  needs_amx();
  const long before = calls().amx_gemm;
  for (const Product shape : {Product{31, 40, 64}, Product{64, 11, 64}, Product{64, 12, 8192 + 32}})
    CHECK(worst_difference(shape, 2) < kTolerance);
  CHECK(calls().amx_gemm == before);
}

TEST("kernels: GELU is ours, in its tanh form, to the ends of each row") {
  needs_vectors();
  const long before = calls().gelu;
  for (const int64_t width : {1, 15, 16, 17, 100, 512}) {
    auto values = random_values(static_cast<size_t>(width) * 3, 3, 4);
    values.front() = -60;
    values.back() = 60;
    KernelGraph graph(2);
    ggml_tensor* input = ggml_new_tensor_2d(graph.context.get(), GGML_TYPE_F32, width, 3);
    const auto computed = graph.run(ggml_gelu(graph.context.get(), input), [&] {
      ggml_backend_tensor_set(input, values.data(), 0, values.size() * sizeof(float));
    });
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = values[i];
      const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      // ggml's table of 16-bit floats is off by a hundred times as much.
      CHECK(std::abs(computed[i] - 0.5 * x * (1 + std::tanh(u))) < 2e-6 * std::max(1.0, std::abs(x)));
    }
  }
  CHECK(calls().gelu == before + 6 * 3);
}
