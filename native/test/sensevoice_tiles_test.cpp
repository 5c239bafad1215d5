#include "harness.h"
#include "kernel_graph.h"

#include "backends/sensevoice/sensevoice_encoder.h"
#include "backends/sensevoice/sensevoice_tiles.h"

#include <ggml-cpp.h>
#include <gguf.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>

// SenseVoice on AMX tiles, compared with the graph of products that computes it elsewhere. The model is made
// here, since the frozen one is too narrow for tiles.

using namespace voxgate;
using namespace voxgate::test;

namespace {

constexpr int64_t kWidth = 64, kHidden = 96;

// The frozen model's tensors, made wider, with random values. `exact` has the values that the matrices of the
// other file have after rounding, in floats.
std::string widened(bool exact) {
  const auto source = (std::filesystem::path(VOXGATE_TEST_DATA) / "sensevoice/random/model.gguf").string();
  ggml_context* raw = nullptr;
  const gguf_context_ptr original(gguf_init_from_file(source.c_str(), {true, &raw}));
  const ggml_context_ptr tensors(raw);
  const ggml_context_ptr made(ggml_init({size_t{8} << 20, nullptr, false}));
  const gguf_context_ptr file(gguf_init_empty());
  gguf_set_kv(file.get(), original.get());
  gguf_set_val_u32(file.get(), "stt.sensevoice.encoder.d_model", kWidth);
  gguf_set_val_u32(file.get(), "stt.sensevoice.encoder.d_ff", kHidden);
  gguf_set_val_u32(file.get(), "stt.sensevoice.encoder.n_heads", 2);
  for (int64_t i = 0; i < gguf_get_n_tensors(original.get()); ++i) {
    const auto* tensor = ggml_get_tensor(raw, gguf_get_tensor_name(original.get(), i));
    const std::string name = tensor->name;
    std::array<int64_t, 4> shape{};
    for (size_t d = 0; d < 4; ++d) {
      const int64_t extent = tensor->ne[d];
      const bool hidden = name.find("ffn.fc") != name.npos && extent == 48;
      shape[d] = hidden ? kHidden : extent == 32 ? kWidth : extent == 96 ? 3 * kWidth : extent;
    }
    const bool matrix = ggml_n_dims(tensor) == 2;
    const ggml_type type = !matrix ? GGML_TYPE_F32 : shape[0] % 32 == 0 ? GGML_TYPE_Q8_0 : GGML_TYPE_F16;
    auto* target =
        ggml_new_tensor(made.get(), exact ? GGML_TYPE_F32 : type, ggml_n_dims(tensor), shape.data());
    ggml_set_name(target, name.c_str());
    const bool near_one = name.find("norm") != name.npos && name.ends_with("weight");
    const float scale = matrix ? 1 / std::sqrt(static_cast<float>(shape[0])) : 0.2F;
    auto values = random_values(static_cast<size_t>(ggml_nelements(target)), static_cast<unsigned>(i), scale);
    for (float& value : values)
      value += near_one ? 1 : 0;
    if (name == "ctc.head.weight")
      for (float& value : values)
        value *= 4;
    std::vector<uint8_t> rounded(ggml_row_size(type, shape[0]) * static_cast<size_t>(ggml_nrows(target)));
    if (type != GGML_TYPE_F32) {
      ggml_quantize_chunk(type, values.data(), rounded.data(), 0, ggml_nrows(target), shape[0], nullptr);
      ggml_get_type_traits(type)->to_float(rounded.data(), values.data(), ggml_nelements(target));
    }
    if (target->type == GGML_TYPE_F32)
      std::memcpy(target->data, values.data(), ggml_nbytes(target));
    else
      std::memcpy(target->data, rounded.data(), ggml_nbytes(target));
    gguf_add_tensor(file.get(), target);
  }
  auto path = temporary(exact ? "sensevoice-wide-exact.gguf" : "sensevoice-wide.gguf");
  gguf_write_to_file(file.get(), path.c_str(), false);
  return path;
}

struct Model {
  explicit Model(const std::string& path, int threads = 2)
      : file(path), shape(read_sensevoice_shape(file)), vocabulary(read_sensevoice_vocabulary(file, shape)),
        encoder(file, shape, "cpu", threads, kMostFrames, CancelToken()) {}

  void encode(int frames) {
    encoder.encode(random_values(static_cast<size_t>(frames * shape.input), 99, 3), {0, 1, 2, 14},
                   CancelToken());
  }
  std::vector<float> first() const {
    std::vector<float> row;
    encoder.read_logits(0, row);
    return row;
  }

  static constexpr int kMostFrames = 600;
  GgufFile file;
  SenseVoiceShape shape;
  SenseVoiceVocabulary vocabulary;
  SenseVoiceEncoder encoder;
};

// The second best logit of a row stands this far below the best one.
float margin(std::vector<float> row) {
  std::ranges::sort(row, std::ranges::greater{});
  return row[0] - row[1];
}

bool same(const SenseVoicePeak& a, const SenseVoicePeak& b) {
  return a.token == b.token && a.logprob == b.logprob;
}

} // namespace

TEST("sensevoice tiles: logits and tokens are those of the exact products, for any number of positions") {
  needs_amx();
  Model tiles(widened(false));
  Model exact(widened(true));
  const long before = calls().tile_attention;
  float worst = 0;
  float worst_logprob = 0;
  int compared = 0;
  // Of one tile, of an odd and of an even number, full ones and others.
  for (const int frames : {1, 5, 12, 13, 27, 28, 40, 60, 100, 500, Model::kMostFrames}) {
    tiles.encode(frames);
    exact.encode(frames);
    const auto expected = exact.first();
    const auto actual = tiles.first();
    CHECK(actual.size() == expected.size());
    for (size_t i = 0; i < actual.size(); ++i)
      worst = std::max(worst, std::isfinite(actual[i]) ? std::abs(actual[i] - expected[i]) : INFINITY);
    const auto peaks = tiles.encoder.peaks(-1);
    CHECK(peaks.size() == static_cast<size_t>(frames + kSenseVoiceQueries));
    std::vector<float> row;
    for (int position = 0; position < exact.encoder.positions(); ++position) {
      exact.encoder.read_logits(position, row);
      if (margin(row) < 0.5F)
        continue;
      const auto wanted = peak_of(row, -1);
      const auto& got = peaks[static_cast<size_t>(position)];
      CHECK(got.token == wanted.token);
      worst_logprob = std::max(worst_logprob, std::abs(got.logprob - wanted.logprob));
      ++compared;
    }
  }
  std::cout << "     largest error of a logit " << worst << ", of a log probability " << worst_logprob
            << " in " << compared << " positions\n";
  CHECK(calls().tile_attention > before);
  CHECK(compared > 500);
  CHECK(worst < 0.1F && worst_logprob < 0.1F);
}

TEST("sensevoice tiles: they are nearer to the exact products than 8-bit activations") {
  needs_amx();
  Model exact(widened(true));
  Model tiles(widened(false));
  const auto error = [&](Model& model) {
    double sum = 0;
    for (const int frames : {20, 100}) {
      exact.encode(frames);
      model.encode(frames);
      const auto expected = exact.first();
      const auto actual = model.first();
      for (size_t i = 0; i < actual.size(); ++i)
        sum += std::pow(actual[i] - expected[i], 2);
    }
    return sum;
  };
  const double of_integers = [&] {
    const MostBfloat16 without_tiles(Bfloat16::vectors);
    Model integers(widened(false));
    return error(integers);
  }();
  const double of_tiles = error(tiles);
  std::cout << "     squared error " << of_tiles << ", of 8-bit activations " << of_integers << "\n";
  CHECK(of_tiles < of_integers);
}

TEST("sensevoice tiles: the result is the same to the last bit on any number of threads and in any order") {
  needs_amx();
  const auto path = widened(false);
  Model alone(path, 1);
  alone.encode(500);
  alone.encode(70);
  const auto peaks = alone.encoder.peaks(-1);
  const auto first = alone.first();
  for (const int threads : {1, 2, 3, 7}) {
    Model model(path, threads);
    model.encode(70);
    CHECK(model.first() == first);
    CHECK(std::ranges::equal(model.encoder.peaks(-1), peaks, same));
  }
}

TEST("sensevoice tiles: the logits of single tokens are those that the tiles compared") {
  needs_amx();
  Model model(widened(false));
  float worst = 0;
  for (const int frames : {1, 13, 28, 100}) {
    model.encode(frames);
    const auto scores = model.encoder.scores();
    const auto first = model.first();
    for (size_t i = 0; i < first.size(); ++i)
      worst = std::max(worst, std::abs(scores.logit(0, static_cast<int32_t>(i)) - first[i]));
    const auto peaks = model.encoder.peaks(-1);
    for (int position = 0; position < model.encoder.positions(); ++position) {
      const auto& peak = peaks[static_cast<size_t>(position)];
      const float best = scores.logit(position, peak.token);
      double sum = 0;
      for (int32_t token = 0; token < model.shape.vocabulary; ++token) {
        worst = std::max(worst, scores.logit(position, token) - best);
        sum += std::exp(scores.logit(position, token) - best);
      }
      worst = std::max(worst, std::abs(peak.logprob + static_cast<float>(std::log(sum))));
      CHECK(scores.blank_logprob(position) == peak.logprob);
    }
  }
  std::cout << "     largest error " << worst << "\n";
  CHECK(worst < 0.1F); // the tiles round the weights to bfloat16
}

TEST("sensevoice tiles: a position is read back from packed channels") {
  constexpr size_t kChannels = 40; // with room for 64
  std::vector<uint16_t> packed(2 * 2 * static_cast<size_t>(packed_floats(kChannels)));
  for (size_t i = 0; i < packed.size(); ++i)
    packed[i] = static_cast<uint16_t>(0x3F80 + i % 128); // 1 and more, in steps of 1/128
  std::vector<float> row(kChannels);
  read_packed(packed, 19, row); // the fourth of the second tile
  for (size_t i = 0; i < kChannels; ++i) {
    const size_t at = packed.size() / 2 + i / 2 * 32 + 3 * 2 + i % 2;
    CHECK(row[i] == 1 + static_cast<float>(at % 128) / 128);
  }
}

TEST("sensevoice tiles: models that tiles are not made for are computed without them") {
  needs_amx();
  const long before = calls().tile_norm;
  Model(widened(true)).encode(20);
  CHECK(calls().tile_norm == before);

  GgufFile file(widened(false));
  auto shape = read_sensevoice_shape(file);
  read_sensevoice_vocabulary(file, shape); // its size belongs to the shape
  const SenseVoiceWeights weights(file, shape, ggml_backend_cpu_buffer_type(), CancelToken());
  const auto fits = [&](int SenseVoiceShape::*field, int value) {
    auto changed = shape;
    changed.*field = value;
    return fits_tiles(weights, changed, 100);
  };
  CHECK(fits(&SenseVoiceShape::hidden, kMaxTileChannels) &&
        !fits(&SenseVoiceShape::hidden, kMaxTileChannels + 32));
  CHECK(fits(&SenseVoiceShape::kernel, kMaxTileTaps) && !fits(&SenseVoiceShape::kernel, kMaxTileTaps + 2));
  CHECK(fits_tiles(weights, shape, kMaxTilePositions) && !fits_tiles(weights, shape, kMaxTilePositions + 1));
  CHECK(!fits(&SenseVoiceShape::heads, 4) && !fits(&SenseVoiceShape::width, 80));
}

TEST("sensevoice tiles: one value that is no number is a failure, where it is not the best one") {
  constexpr int kVocabulary = 40, kPositions = 20;
  std::vector<float> scores(static_cast<size_t>(tile_scores_floats(kVocabulary, kPositions)));
  const auto state = [&](size_t part, size_t tile) {
    return reinterpret_cast<ScoreState*>(scores.data() + first_logits_floats(kVocabulary)) +
           part * static_cast<size_t>(tiles_of(kPositions)) + tile;
  };
  for (size_t part = 0; part < kScoreParts; ++part)
    for (size_t tile = 0; tile < 2; ++tile)
      for (size_t lane = 0; lane < kTilePositions; ++lane) {
        state(part, tile)->highest[lane] = part < 2 ? static_cast<float>(part) : -INFINITY;
        state(part, tile)->token[lane] = static_cast<int32_t>(part) + 10;
        state(part, tile)->sum[lane] = part < 2 ? 1 : 0;
      }
  const auto peaks = read_peaks(scores, kVocabulary, kPositions);
  CHECK(peaks.size() == kPositions && peaks[19].token == 11);
  CHECK(std::abs(peaks[19].logprob + std::log(1 + std::exp(-1.0F))) < 1e-6F);
  state(0, 1)->sum[5] = NAN; // behind the last position
  CHECK(read_peaks(scores, kVocabulary, kPositions).size() == kPositions);
  state(0, 1)->sum[3] = NAN;
  CHECK(failure_of([&] { read_peaks(scores, kVocabulary, kPositions); }) == StatusCode::inference_failed);
}
