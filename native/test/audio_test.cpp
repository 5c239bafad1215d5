#include "harness.h"

#include "audio/audio_file.h"
#include "vorbis.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <random>
#include <span>

using namespace voxgate;
using namespace voxgate::test;

namespace {

struct WavHeader {
  uint16_t coding = 1; // 1 integers, 3 floats
  uint16_t channels = 1;
  uint32_t rate = 16000;
  uint16_t bits = 16;
  uint32_t data_bytes = 0xFFFFFFFF; // when unset, the size of the samples
};

std::string wav(WavHeader header, const std::string& data) {
  const uint32_t size =
      header.data_bytes == 0xFFFFFFFF ? static_cast<uint32_t>(data.size()) : header.data_bytes;
  const auto frame = static_cast<uint16_t>(header.channels * header.bits / 8);
  std::string bytes = "RIFF";
  put(bytes, 36 + size);
  bytes += "WAVEfmt ";
  put(bytes, uint32_t{16});
  put(bytes, header.coding);
  put(bytes, header.channels);
  put(bytes, header.rate);
  put(bytes, header.rate * frame);
  put(bytes, frame);
  put(bytes, header.bits);
  bytes += "data";
  put(bytes, size);
  return bytes + data;
}

std::string sine(double hertz, uint32_t rate, double seconds) {
  std::string data;
  for (uint32_t i = 0; i < rate * seconds; ++i)
    put(data, static_cast<int16_t>(16000 * std::sin(2 * std::numbers::pi * hertz * i / rate)));
  return data;
}

// As the gateway recognizes files that are whole.
AudioFormat format_of(const std::string& bytes) {
  return bytes.starts_with("RIFF")   ? AudioFormat::wav
         : bytes.starts_with("fLaC") ? AudioFormat::flac
         : bytes.starts_with("OggS") ? AudioFormat::vorbis
                                     : AudioFormat::mp3;
}

std::vector<float> decode(const std::string& bytes) {
  const auto path = temporary("audio");
  write_file(path, bytes);
  AudioFile file(path, format_of(bytes));
  std::vector<float> all;
  for (auto block = file.read(1000); !block.empty(); block = file.read(1000))
    all.insert(all.end(), block.begin(), block.end());
  return all;
}

float loudness(std::span<const float> samples) {
  double sum = 0;
  for (const float sample : samples)
    sum += sample * sample;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(samples.size())));
}

} // namespace

TEST("audio: the sample that comes with whisper.cpp is read whole") {
  AudioFile file(VOXGATE_SAMPLE_MP3, AudioFormat::mp3);
  CHECK(file.info().channels == 1);
  CHECK(file.read(16000 * 60).size() == 176000);
  CHECK(file.read(1).empty());
}

TEST("audio: rates and channels become 16 kHz mono of the same length") {
  for (const uint32_t rate : {8000U, 11025U, 16000U, 22050U, 44100U, 48000U, 96000U}) {
    const auto samples = decode(wav({.rate = rate}, sine(440, rate, 1)));
    CHECK(samples.size() == 16000);
    CHECK(std::fabs(loudness(std::span(samples).subspan(1000, 6000)) - 0.345F) < 0.02F);
  }
  std::string stereo;
  for (int i = 0; i < 8000; ++i) {
    put(stereo, int16_t{16384});
    put(stereo, int16_t{0});
  }
  const auto mixed = decode(wav({.channels = 2}, stereo));
  CHECK(mixed.size() == 8000 && std::fabs(mixed[4000] - 0.25F) < 0.001F);
}

std::string stereo(uint32_t rate, double seconds, auto left, auto right) {
  std::string data;
  for (uint32_t i = 0; i < rate * seconds; ++i) {
    put(data, static_cast<int16_t>(16000 * left(static_cast<double>(i) / rate)));
    put(data, static_cast<int16_t>(16000 * right(static_cast<double>(i) / rate)));
  }
  return wav({.channels = 2, .rate = rate}, data);
}

double tone(double sec) {
  return std::sin(2 * std::numbers::pi * 440 * sec);
}

TEST("audio: channels that cancel each other are heard, without a click where that begins and ends") {
  for (const uint32_t rate : {8000U, 16000U, 48000U}) {
    const auto flipped = [](double sec) { return sec < 1 || sec >= 2 ? tone(sec) : -0.95 * tone(sec); };
    const auto samples = decode(stereo(rate, 3, tone, flipped));
    for (const size_t second : {0U, 1U, 2U})
      CHECK(std::fabs(loudness(std::span(samples).subspan(16000 * second + 9000, 6000)) - 0.345F) < 0.02F);
    float step = 0;
    for (size_t i = 1; i < samples.size(); ++i)
      step = std::max(step, std::fabs(samples[i] - samples[i - 1]));
    CHECK(step < 0.12F); // the tone itself has 0.085
    const auto all = decode(stereo(rate, 1, tone, [](double sec) { return -tone(sec); }));
    CHECK(std::fabs(loudness(std::span(all).first(1600)) - 0.345F) < 0.02F);
  }
}

TEST("audio: other stereo is the average of its channels, however wide it is") {
  const auto beside = [](double sec) { return -0.6 * tone(sec); };
  const auto samples = decode(stereo(16000, 1, tone, beside));
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto left = static_cast<int16_t>(16000 * tone(static_cast<double>(i) / 16000));
    const auto right = static_cast<int16_t>(16000 * beside(static_cast<double>(i) / 16000));
    CHECK(samples[i] == (static_cast<float>(left) / 32768 + static_cast<float>(right) / 32768) / 2);
  }
}

TEST("audio: half the difference of two channels stands beside each sample; of others nothing does") {
  const auto beside = [](double sec) { return sec < 0.5 ? 0.0 : 0.25 * tone(sec); };
  for (const uint32_t rate : {16000U, 44100U}) {
    const auto path = temporary("sides");
    write_file(path, stereo(rate, 1, tone, beside));
    AudioFile file(path, AudioFormat::wav);
    while (!file.decode(16000)) {
    }
    const auto sides = file.take_sides(16000);
    const auto samples = file.take(16000);
    CHECK(sides.size() == samples.size());
    for (size_t i = 1000; i < 15000; ++i) {
      const bool is_edge = i > 7900 && i < 8100;
      const double right = samples[i] - sides[i];
      CHECK(is_edge || std::fabs(right - 16000.0 / 32768 * beside(static_cast<double>(i) / 16000)) < 0.002);
    }
    AudioFile left(path, AudioFormat::wav, {}, 0);
    while (!left.decode(16000)) {
    }
    CHECK(left.take_sides(16000).empty());
  }
}

// How loud one frequency is in the second half second of 16 kHz samples, over the loudness of `sine`, in dB.
double level(std::span<const float> samples, double hertz) {
  double real = 0;
  double imaginary = 0;
  constexpr int kCount = 8000;
  for (int i = 0; i < kCount; ++i) {
    const double angle = 2 * std::numbers::pi * hertz * i / 16000;
    real += samples[8000 + i] * std::cos(angle);
    imaginary += samples[8000 + i] * std::sin(angle);
  }
  return 20 * std::log10(2 * std::hypot(real, imaginary) / kCount / (16000.0 / 32768) + 1e-9);
}

TEST("audio: a tone keeps its level, and neither folds back from above 8 kHz nor has an image") {
  struct Tone {
    uint32_t rate;
    double hertz;
    double other; // the frequency of its alias or image
  };
  const Tone tones[] = {{8000, 2000, 6000},  {8000, 3400, 4600},   {11025, 4500, 6525},
                        {22050, 7000, 5500}, {44100, 9000, 7000},  {44100, 10000, 6000},
                        {44100, 7000, 2000}, {48000, 14000, 2000}, {96000, 10000, 6000},
                        {44101, 7000, 2000}, {44101, 9000, 7000},  {383999, 9000, 7000}};
  for (const auto& tone : tones) {
    const auto samples = decode(wav({.rate = tone.rate}, sine(tone.hertz, tone.rate, 1.2)));
    CHECK(level(samples, tone.other) < -65);
    if (tone.hertz < 8000)
      CHECK(std::fabs(level(samples, tone.hertz)) < 0.3);
  }
}

TEST("audio: floats that are no numbers or too large become harmless") {
  std::string data;
  for (int i = 0; i < 48000; ++i) {
    put(data, i == 100   ? std::numeric_limits<float>::quiet_NaN()
              : i == 200 ? -std::numeric_limits<float>::infinity()
              : i == 300 ? 1e30F
                         : 0.25F);
  }
  for (const uint32_t rate : {16000U, 48000U}) {
    const auto samples = decode(wav({.coding = 3, .rate = rate, .bits = 32}, data));
    CHECK(std::ranges::all_of(samples, [](float s) { return std::isfinite(s) && std::fabs(s) <= 1; }));
    CHECK(std::fabs(samples[samples.size() / 2] - 0.25F) < 0.01F);
  }
}

TEST("audio: one channel is read alone, and one that the file lacks is the average of all") {
  std::string data;
  for (int i = 0; i < 16000; ++i) {
    put(data, static_cast<int16_t>(8000));
    put(data, static_cast<int16_t>(-16000));
  }
  const auto path = temporary("audio");
  write_file(path, wav({.channels = 2}, data));
  const auto level = [&](int channel) {
    AudioFile file(path, AudioFormat::wav, {}, channel);
    CHECK(file.info().channels == 2);
    const auto samples = file.read(100000);
    CHECK(samples.size() == 16000);
    return std::lround(samples[8000] * 32768);
  };
  CHECK(level(0) == 8000);
  CHECK(level(1) == -16000);
  CHECK(level(2) == -4000);
  CHECK(level(AudioFile::kAllChannels) == -4000);
}

TEST("audio: a placeholder for the size is not a duration") {
  const auto path = temporary("audio");
  write_file(path, wav({.data_bytes = 0x7FFFF000}, sine(440, 16000, 0.5)));
  AudioFile file(path, AudioFormat::wav);
  CHECK(file.info().duration_sec < 0.6);
  CHECK(file.read(100000).size() == 8000);
}

TEST("audio: a file that cannot be used is bad_audio") {
  const auto data = sine(440, 16000, 0.1);
  const std::string broken[] = {
      "",
      "This is a text file.",
      std::string(5000, '\0'),
      wav({}, ""),
      wav({.channels = 0}, data),
      wav({.channels = 200}, data),
      wav({.rate = 0}, data),
      wav({.rate = 4000000000U}, data),
      wav({.bits = 0}, data),
      wav({.coding = 99}, data),
      "ID3\x04" + std::string(20, '\x7F'),
      "OggS" + std::string(24, '\0') + "OpusHead" + std::string(100, '\0'),
      "fLaC" + std::string(100, '\0'),
      std::string("\xFF\xF1\x50\x80", 4) + std::string(3000, '\x01'), // AAC
  };
  for (const auto& bytes : broken)
    CHECK(failure_of([&] { decode(bytes); }) == StatusCode::bad_audio);
  CHECK(failure_of([] { AudioFile file(temporary("missing"), AudioFormat::wav); }) == StatusCode::bad_audio);
  CHECK(failure_of([] { AudioFile file("/", AudioFormat::wav); }) == StatusCode::bad_audio);
}

TEST("audio: as many channels and as low and high rates are read as may be, and no more") {
  const auto data = sine(440, 16000, 1);
  for (const WavHeader& good :
       {WavHeader{.channels = 32}, WavHeader{.rate = 2000}, WavHeader{.rate = 384000}})
    decode(wav(good, data));
  for (const WavHeader& bad : {WavHeader{.channels = 33}, WavHeader{.rate = 1999}, WavHeader{.rate = 384001}})
    CHECK(failure_of([&] { decode(wav(bad, data)); }) == StatusCode::bad_audio);
}

TEST("audio: lengths in a Vorbis header that overflow are bad_audio") {
  const std::string many(400, '\x01');
  for (const uint32_t length :
       {0xFFFFFFFFU, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFF8U, 0x20000001U, 0x40000000U}) {
    for (const auto& bytes :
         {vorbis_with_comments(length, "", 0, many), vorbis_with_comments(2, "ab", length, many)})
      CHECK(failure_of([&] { decode(bytes); }) == StatusCode::bad_audio);
  }
}

TEST("audio: damaged and cut files end and never crash") {
  std::mt19937 random(7);
  const std::string sources[] = {
      read_file(VOXGATE_SAMPLE_MP3).substr(0, 30000), wav({}, sine(440, 16000, 0.2)),
      wav({.coding = 3, .channels = 2, .rate = 44100, .bits = 32}, sine(440, 44100, 0.1))};
  for (const auto& source : sources) {
    for (int round = 0; round < 60; ++round) {
      auto bytes = source.substr(0, random() % source.size());
      for (unsigned i = 0; i < random() % 40 && !bytes.empty(); ++i) {
        const size_t near_start = random() % 2 == 0 ? std::min<size_t>(bytes.size(), 64) : bytes.size();
        bytes[random() % near_start] = static_cast<char>(random());
      }
      try {
        const auto samples = decode(bytes);
        CHECK(std::ranges::all_of(samples, [](float s) { return std::isfinite(s) && std::fabs(s) <= 1; }));
      } catch (const Failure& failure) {
        CHECK(failure.status().code == StatusCode::bad_audio);
      }
    }
  }
}

TEST("audio: a file whose reading was cancelled does not pass for one that ends there") {
  const auto path = temporary("audio");
  write_file(path, wav({}, sine(440, 16000, 3)));
  AudioFile file(path, AudioFormat::wav);
  CancelToken cancel;
  CHECK(file.read(1000, cancel).size() == 1000);
  cancel.cancel();
  CHECK(failure_of([&] { file.read(40000, cancel); }) == StatusCode::cancelled);
  CHECK(failure_of([&] { file.read(40000); }) == StatusCode::closed);
}
