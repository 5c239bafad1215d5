#include "harness.h"
#include "kernel_graph.h"

#include "backends/backend_proc.h"
#include "kernels/speech_ops.h"

#include <algorithm>
#include <array>
#include <cmath>

// These tests compare the operations of speech encoders with plain loops.

using namespace voxgate;
using namespace voxgate::test;

namespace {

struct Matrix {
  int64_t width;
  int64_t rows;
  std::vector<float> values;

  Matrix(int64_t columns, int64_t count, unsigned seed, float scale = 1)
      : width(columns), rows(count),
        values(random_values(static_cast<size_t>(columns * count), seed, scale)) {}
  double at(int64_t row, int64_t column) const { return values[static_cast<size_t>(row * width + column)]; }
  // Zero outside.
  double around(int64_t row, int64_t column) const {
    return row < 0 || row >= rows || column < 0 || column >= width ? 0 : at(row, column);
  }
};

using Op = ggml_custom_op_t SpeechOps::*;

std::vector<float> compute(Op op, void* user, int64_t width, int64_t rows, const std::vector<Matrix>& inputs,
                           int threads) {
  KernelGraph graph(threads);
  const auto get = backend_proc<GetSpeechOps>(graph.backend.get(), kGetSpeechOps);
  CHECK(get != nullptr);
  std::vector<ggml_tensor*> tensors;
  for (const auto& input : inputs)
    tensors.push_back(ggml_new_tensor_2d(graph.context.get(), GGML_TYPE_F32, input.width, input.rows));
  auto* result = ggml_custom_4d(graph.context.get(), GGML_TYPE_F32, width, rows, 1, 1, tensors.data(),
                                static_cast<int>(tensors.size()), get()->*op, GGML_N_TASKS_MAX, user);
  return graph.run(result, [&] {
    for (size_t i = 0; i < inputs.size(); ++i)
      ggml_backend_tensor_set(tensors[i], inputs[i].values.data(), 0,
                              inputs[i].values.size() * sizeof(float));
  });
}

// Checks the first rows of the result, on any number of threads; `rows` counts the working memory too.
void check(Op op, void* user, int64_t rows, const std::vector<Matrix>& inputs, int64_t width,
           const std::vector<double>& expected) {
  std::vector<float> alone;
  for (const int threads : {1, 2, 3, 7, 16}) {
    auto computed = compute(op, user, width, rows, inputs, threads);
    computed.resize(expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(computed[i] - expected[i]) < 2e-5 * std::max(1.0, std::abs(expected[i])));
    if (threads == 1)
      alone = computed;
    CHECK(computed == alone);
  }
}

double silu(double x) {
  return x / (1 + std::exp(-x));
}

} // namespace

TEST("speech ops: a norm is that of plain loops") {
  const long before = calls().speech_norm;
  for (const int64_t width : {1, 8, 31, 32, 100, 512}) {
    Matrix x(width, 5, 1), weight(width, 1, 2), bias(width, 1, 3);
    for (float& value : x.values)
      value += 100; // a mean that is far from zero must not cost precision
    std::vector<double> expected;
    for (int64_t row = 0; row < x.rows; ++row) {
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < width; ++i)
        mean += x.at(row, i) / static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i)
        variance += (x.at(row, i) - mean) * (x.at(row, i) - mean) / static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i)
        expected.push_back((x.at(row, i) - mean) / std::sqrt(variance + 1e-3) * weight.at(0, i) +
                           bias.at(0, i));
    }
    check(&SpeechOps::norm, speech_user(1e-3F), x.rows, {x, weight, bias}, width, expected);
  }
  CHECK(calls().speech_norm > before);
}

TEST("speech ops: attention is that of plain loops, with relative positions and without") {
  const long before = calls().speech_attention;
  for (const bool relative : {false, true})
    for (const auto& [time, heads, depth] :
         {std::array<int64_t, 3>{1, 2, 4}, {7, 1, 64}, {64, 2, 16}, {75, 3, 20}}) {
      const int64_t width = heads * depth;
      Matrix q(width, time, 1), k(width, time, 2), v(width, time, 3), positions(width, 2 * time - 1, 4);
      Matrix u(width, 1, 5), w(width, 1, 6), mask(time, time, 7);
      std::vector<double> expected(static_cast<size_t>(width * time), 0);
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t query = 0; query < time; ++query) {
          std::vector<double> weights;
          double sum = 0;
          for (int64_t key = 0; key < time; ++key) {
            double score = 0;
            for (int64_t i = head * depth; i < (head + 1) * depth; ++i) {
              score += (q.at(query, i) + (relative ? u.at(0, i) : 0)) * k.at(key, i);
              if (relative)
                score += (q.at(query, i) + w.at(0, i)) * positions.at(time - 1 - query + key, i);
            }
            score = score / std::sqrt(static_cast<double>(depth)) + (relative ? mask.at(0, key) : 0);
            weights.push_back(std::exp(score));
            sum += weights.back();
          }
          for (int64_t key = 0; key < time; ++key)
            for (int64_t i = head * depth; i < (head + 1) * depth; ++i)
              expected[static_cast<size_t>(query * width + i)] +=
                  weights[static_cast<size_t>(key)] / sum * v.at(key, i);
        }
      std::vector<Matrix> inputs{q, k, v};
      if (relative)
        inputs.insert(inputs.end(), {positions, u, w, mask});
      check(&SpeechOps::attention, speech_user(static_cast<int>(heads)),
            attention_rows(width, heads, time, relative ? 2 * time - 1 : 0), inputs, width, expected);
    }
  CHECK(calls().speech_attention > before);
}

TEST("speech ops: threads share the queries of a head where there are more of them than heads") {
  CHECK(attention_parts(4, 1) == 1 && attention_parts(4, 4) == 1); // heads alone are even
  CHECK(attention_parts(4, 8) == 2 && attention_parts(4, 16) == 4 && attention_parts(8, 16) == 2);
  CHECK(attention_parts(4, 6) == 3 && attention_parts(8, 6) == 2); // two thirds of a head, one and a half
  CHECK(attention_parts(2, 7) == 3); // seven parts in two rounds lay out more than they save
  for (int64_t heads = 1; heads <= 32; ++heads)
    for (int64_t threads = 1; threads <= 512; ++threads)
      CHECK(heads * attention_parts(heads, threads) <= std::max(heads, kAttentionJobs));
  CHECK(attention_parts(4, 64) == 4 && attention_parts(20, 64) == 1); // there is no memory for more
}

TEST("speech ops: the convolution of a Conformer is that of plain loops") {
  const long before = calls().speech_convolution;
  for (const int64_t taps : {3, 9})
    for (const int64_t time : {1, 4, 30})
      for (const int64_t width : {8, 40, 64}) {
        Matrix x(2 * width, time, 1), kernel(taps, width, 2), mean(width, 1, 3), variance(width, 1, 4);
        Matrix weight(width, 1, 5), bias(width, 1, 6);
        for (float& value : variance.values)
          value = 0.5F + std::abs(value);
        std::vector<double> expected;
        for (int64_t t = 0; t < time; ++t)
          for (int64_t c = 0; c < width; ++c) {
            double sum = 0;
            for (int64_t tap = 0; tap < taps; ++tap) {
              const int64_t from = t + tap - taps / 2;
              sum += x.around(from, c) / (1 + std::exp(-x.around(from, width + c))) * kernel.at(c, tap);
            }
            expected.push_back(
                silu((sum - mean.at(0, c)) / std::sqrt(variance.at(0, c)) * weight.at(0, c) + bias.at(0, c)));
          }
        check(&SpeechOps::convolution, nullptr, convolution_rows(taps, time),
              {x, kernel, mean, variance, weight, bias}, width, expected);
      }
  CHECK(calls().speech_convolution > before);
}

TEST("speech ops: both steps of the subsampling are those of plain loops") {
  const long before = calls().speech_subsample;
  const long again = calls().speech_subsample_again;
  for (const int64_t frames : {1, 2, 7, 33})
    for (const int64_t mels : {8, 16})
      for (const int64_t channels : {4, 40}) {
        Matrix mel(mels, frames, 1), first(9, channels, 2), first_bias(channels, 1, 3);
        Matrix second(9, channels, 4), second_bias(channels, 1, 5);
        const int64_t bands = halved(mels), times = halved(frames);
        const auto tap_sum = [](int64_t t, int64_t f, const Matrix& kernel, int64_t c, const auto& value) {
          double sum = 0;
          for (int64_t tap = 0; tap < 9; ++tap)
            sum += value(2 * t + tap / 3 - 1, 2 * f + tap % 3 - 1) * kernel.at(c, tap);
          return sum;
        };
        std::vector<double> expected;
        for (int64_t t = 0; t < halved(times); ++t)
          for (int64_t f = 0; f < halved(bands); ++f)
            for (int64_t c = 0; c < channels; ++c) {
              const auto heard = [&](int64_t time, int64_t band) {
                if (time < 0 || time >= times || band < 0 || band >= bands)
                  return 0.0;
                const auto at = [&](int64_t row, int64_t column) { return mel.around(row, column); };
                return std::max(0.0, tap_sum(time, band, first, c, at) + first_bias.at(0, c));
              };
              expected.push_back(tap_sum(t, f, second, c, heard) + second_bias.at(0, c));
            }
        check(&SpeechOps::subsample, nullptr, subsample_rows(mels, frames),
              {mel, first, first_bias, second, second_bias}, channels, expected);

        Matrix x(channels, frames * mels, 6);
        expected.clear();
        for (int64_t t = 0; t < times; ++t)
          for (int64_t f = 0; f < bands; ++f)
            for (int64_t c = 0; c < channels; ++c) {
              const auto at = [&](int64_t row, int64_t band) {
                const bool inside = row >= 0 && row < frames && band >= 0 && band < mels;
                return inside ? std::max(0.0, x.at(row * mels + band, c) + first_bias.at(0, c)) : 0.0;
              };
              expected.push_back(tap_sum(t, f, second, c, at) + second_bias.at(0, c));
            }
        check(&SpeechOps::subsample_again, speech_user(static_cast<int>(mels)),
              subsample_again_rows(mels, frames), {x, first_bias, second, second_bias}, channels, expected);
      }
  CHECK(calls().speech_subsample > before && calls().speech_subsample_again > again);
}

TEST("speech ops: what follows a product is that of plain loops, step by step") {
  const long before = calls().speech_finish;
  Matrix x(50, 7, 1), bias(50, 1, 2), carried(50, 7, 3);
  for (const int steps : {0, int{kBias}, int{kCarry}, kBias | kRelu, kSilu | kHalf, kHalf | kCarry,
                          kBias | kRelu | kSilu | kHalf | kCarry}) {
    std::vector<double> expected;
    for (int64_t row = 0; row < x.rows; ++row)
      for (int64_t i = 0; i < x.width; ++i) {
        double value = x.at(row, i) + ((steps & kBias) != 0 ? bias.at(0, i) : 0);
        value = (steps & kRelu) != 0 ? std::max(0.0, value) : value;
        value = (steps & kSilu) != 0 ? silu(value) : value;
        expected.push_back(((steps & kHalf) != 0 ? value / 2 : value) +
                           ((steps & kCarry) != 0 ? carried.at(row, i) : 0));
      }
    KernelGraph graph(2);
    const auto input = [&](const Matrix& from) {
      return ggml_new_tensor_2d(graph.context.get(), GGML_TYPE_F32, from.width, from.rows);
    };
    auto* const to = input(x);
    auto* const first = input(bias);
    auto* const last = input(carried);
    std::vector<ggml_tensor*> args;
    if ((steps & kBias) != 0)
      args.push_back(first);
    if ((steps & kCarry) != 0)
      args.push_back(last);
    const auto get = backend_proc<GetSpeechOps>(graph.backend.get(), kGetSpeechOps);
    auto* result = ggml_custom_inplace(graph.context.get(), to, args.data(), static_cast<int>(args.size()),
                                       get()->finish, GGML_N_TASKS_MAX, speech_user(steps));
    const auto fill = [](ggml_tensor* tensor, const Matrix& from) {
      ggml_backend_tensor_set(tensor, from.values.data(), 0, from.values.size() * sizeof(float));
    };
    const auto computed = graph.run(result, [&] {
      fill(to, x);
      fill(first, bias);
      fill(last, carried);
    });
    for (size_t i = 0; i < expected.size(); ++i)
      CHECK(std::abs(computed[i] - expected[i]) < 1e-5);
  }
  CHECK(calls().speech_finish > before);
}

TEST("speech ops: the memory of FSMN is that of plain loops") {
  const long before = calls().speech_memory;
  for (const int64_t time : {1, 5, 40})
    for (const int64_t width : {8, 50, 64}) {
      constexpr int64_t kTaps = 11;
      Matrix v(width, time, 1), kernel(kTaps, width, 2), x(width, time, 3);
      std::vector<double> expected;
      for (int64_t t = 0; t < time; ++t)
        for (int64_t c = 0; c < width; ++c) {
          double sum = v.at(t, c) + x.at(t, c);
          for (int64_t tap = 0; tap < kTaps; ++tap)
            sum += v.around(t + tap - kTaps / 2, c) * kernel.at(c, tap);
          expected.push_back(sum);
        }
      check(&SpeechOps::memory, nullptr, memory_rows(kTaps, time), {v, kernel, x}, width, expected);
    }
  CHECK(calls().speech_memory > before);
}
