#include "harness.h"

#include "backends/sensevoice/sensevoice_backend.h"

#include <ggml-cpp.h>
#include <gguf.h>

#include <cmath>
#include <filesystem>

// Published files have their matrices in these types; here they are made from the frozen file of floats.

using namespace voxgate;
using namespace voxgate::test;

namespace {

// Gives the file with its matrices as `type`; those whose rows do not divide into its blocks are F16.
std::string converted(const std::string& source, ggml_type type) {
  ggml_context* raw = nullptr;
  const gguf_context_ptr original(gguf_init_from_file(source.c_str(), {false, &raw}));
  const ggml_context_ptr tensors(raw);
  const ggml_context_ptr made(
      ggml_init({std::filesystem::file_size(source) + (size_t{1} << 20), nullptr, false}));
  const gguf_context_ptr file(gguf_init_empty());
  gguf_set_kv(file.get(), original.get());
  for (int64_t i = 0; i < gguf_get_n_tensors(original.get()); ++i) {
    const auto* tensor = ggml_get_tensor(raw, gguf_get_tensor_name(original.get(), i));
    const bool matrix = ggml_n_dims(tensor) > 1;
    const bool fits = ggml_n_dims(tensor) == 2 && tensor->ne[0] % ggml_blck_size(type) == 0;
    const ggml_type wanted = !matrix ? GGML_TYPE_F32 : fits ? type : GGML_TYPE_F16;
    auto* target = ggml_new_tensor(made.get(), wanted, ggml_n_dims(tensor), tensor->ne);
    ggml_set_name(target, tensor->name);
    if (wanted == GGML_TYPE_F32)
      std::copy_n(static_cast<const char*>(tensor->data), ggml_nbytes(tensor),
                  static_cast<char*>(target->data));
    else
      ggml_quantize_chunk(wanted, static_cast<const float*>(tensor->data), target->data, 0,
                          ggml_nrows(tensor), tensor->ne[0], nullptr);
    gguf_add_tensor(file.get(), target);
  }
  auto path = temporary(std::string("sensevoice-") + ggml_type_name(type) + ".gguf");
  gguf_write_to_file(file.get(), path.c_str(), false);
  return path;
}

std::vector<float> samples() {
  std::vector<float> result(32000);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = 0.2F * std::sin(static_cast<float>(i) * (0.02F + static_cast<float>(i / 4000) * 0.05F));
  return result;
}

Languages languages(const std::string& path) {
  return load_sensevoice({"sensevoice", path, "cpu", 2}, {})->detect_language(samples(), {0}, {}).front();
}

float probability(const Languages& ranked, const std::string& language) {
  for (const auto& guess : ranked) {
    if (guess.language == language)
      return guess.probability;
  }
  throw Failed{"no probability for " + language};
}

} // namespace

TEST("sensevoice: matrices of every published type give nearly the same answer") {
  const char* other = std::getenv("VOXGATE_SENSEVOICE_FLOATS"); // the k-quants need rows of 256
  const auto source =
      other != nullptr ? std::string(other)
                       : (std::filesystem::path(VOXGATE_TEST_DATA) / "sensevoice/random/model.gguf").string();
  const auto expected = languages(source);
  const std::pair<ggml_type, float> types[] = {{GGML_TYPE_F16, 0.005F}, {GGML_TYPE_BF16, 0.03F},
                                               {GGML_TYPE_Q8_0, 0.03F}, {GGML_TYPE_Q6_K, 0.08F},
                                               {GGML_TYPE_Q5_K, 0.15F}, {GGML_TYPE_Q4_K, 0.3F}};
  for (const auto& [type, tolerance] : types) {
    const auto actual = languages(converted(source, type));
    float most = 0;
    for (const auto& guess : expected)
      most = std::max(most, std::abs(guess.probability - probability(actual, guess.language)));
    std::cout << "     " << ggml_type_name(type) << ": largest difference " << most << "\n";
    CHECK(most < tolerance);
  }
}
