#include "audio/resampler.h"

#include "audio/miniaudio_config.h"
#include "backend.h"

#include <algorithm>
#include <array>

namespace voxgate {
namespace {

// The steepest low-pass filter of miniaudio, because frequencies above 8 kHz must not fold back into speech.
constexpr ma_uint32 kLowPassOrder = 8;

} // namespace

struct Resampler::State {
  explicit State(int rate) {
    auto config =
        ma_linear_resampler_config_init(ma_format_f32, 1, static_cast<ma_uint32>(rate), kSampleRate);
    config.lpfOrder = kLowPassOrder;
    if (ma_linear_resampler_init(&config, nullptr, &resampler) != MA_SUCCESS)
      throw Failure(StatusCode::bad_audio, "Cannot convert audio of " + std::to_string(rate) + " Hz");
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { ma_linear_resampler_uninit(&resampler, nullptr); }

  ma_linear_resampler resampler{};
};

Resampler::Resampler(int rate) : rate_(rate) {
  if (rate != kSampleRate)
    state_ = std::make_unique<State>(rate);
}

Resampler::~Resampler() = default;

void Resampler::run(std::span<const float> input, std::vector<float>& output) {
  std::array<float, 4096> block;
  while (true) {
    ma_uint64 in = input.size();
    ma_uint64 out = block.size();
    ma_linear_resampler_process_pcm_frames(&state_->resampler, input.data(), &in, block.data(), &out);
    output.insert(output.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(out));
    produced_ += out;
    input = input.subspan(static_cast<size_t>(in));
    if (input.empty() && out < block.size())
      return;
    if (in == 0 && out == 0)
      return;
  }
}

void Resampler::process(std::span<const float> input, std::vector<float>& output) {
  consumed_ += input.size();
  if (state_)
    run(input, output);
  else
    output.insert(output.end(), input.begin(), input.end());
}

void Resampler::finish(std::vector<float>& output) {
  if (!state_)
    return;
  const uint64_t rate = static_cast<uint64_t>(rate_);
  const uint64_t wanted = (consumed_ * kSampleRate + rate / 2) / rate;
  const std::array<float, 1024> silence{};
  while (produced_ < wanted)
    run(silence, output);
  output.resize(output.size() - std::min<uint64_t>(output.size(), produced_ - wanted));
  produced_ = wanted;
}

} // namespace voxgate
