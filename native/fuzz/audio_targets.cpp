// Any bytes as an audio file of each format, with its limits. The last byte of an input is no part of the
// file: it says how much is read at a time, and before which read the call is cancelled.
#include "target.h"

#include "audio/audio_file.h"
#include "vorbis.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace voxgate::fuzz {
namespace {

constexpr std::array<size_t, 4> kReads{1, 161, 4096, 100000};
constexpr int kMaxReads = 64;

void read_file(const std::string& path, AudioFormat format, size_t size, int cancelled_read) {
  CancelToken cancel;
  try {
    AudioFile file(path, format, cancel);
    REQUIRE(file.info().channels > 0 && file.info().sample_rate > 0);
    bool ended = false;
    for (int i = 1; i <= kMaxReads; ++i) {
      if (i == cancelled_read)
        cancel.cancel();
      const auto samples = file.read(size, cancel);
      REQUIRE(samples.size() <= size && (!ended || samples.empty()));
      REQUIRE(std::ranges::all_of(samples, [](float s) { return std::isfinite(s) && std::fabs(s) <= 1; }));
      ended = samples.size() < size;
    }
  } catch (const Failure& failure) {
    const auto code = failure.status().code;
    REQUIRE(code == (cancel.cancelled() ? StatusCode::cancelled : StatusCode::bad_audio));
  }
}

template <AudioFormat kFormat> void run(Bytes input) {
  if (input.empty())
    return;
  const uint8_t choice = input.back();
  const auto& path = write_input(input.first(input.size() - 1));
  read_file(path, kFormat, kReads[choice & 3], choice >> 2 & 7);
}

std::string read_whole(std::string file, uint8_t choice) {
  return file += static_cast<char>(choice);
}

struct Wav {
  uint16_t coding, channels;
  uint32_t rate;
  uint16_t bits;
};

std::string wav(const Wav& wav) {
  const auto frame = static_cast<uint16_t>(std::max(1, wav.channels * wav.bits / 8));
  const std::string data(size_t{64} * frame, '\x35');
  std::string bytes = "RIFF";
  test::put(bytes, static_cast<uint32_t>(36 + data.size()));
  bytes += "WAVEfmt ";
  test::put(bytes, uint32_t{16});
  test::put(bytes, wav.coding);
  test::put(bytes, wav.channels);
  test::put(bytes, wav.rate);
  test::put(bytes, wav.rate * frame);
  test::put(bytes, frame);
  test::put(bytes, wav.bits);
  bytes += "data";
  test::put(bytes, static_cast<uint32_t>(data.size()));
  return bytes + data;
}

// PCM of all widths, floats, A-law, mu-law, two kinds of ADPCM.
std::vector<std::string> wav_seeds() {
  std::vector<std::string> seeds;
  uint8_t choice = 2;
  for (const auto& kind : {Wav{1, 1, 16000, 8}, Wav{1, 1, 16000, 16}, Wav{1, 2, 44100, 24},
                           Wav{1, 6, 48000, 32}, Wav{3, 1, 8000, 32}, Wav{3, 2, 96000, 64},
                           Wav{6, 1, 8000, 8}, Wav{7, 2, 8000, 8}, Wav{2, 1, 22050, 4}, Wav{17, 2, 22050, 4}})
    seeds.push_back(read_whole(wav(kind), choice++));
  return seeds;
}

std::vector<std::string> no_seeds() {
  return {};
}

std::vector<std::string> vorbis_seeds() {
  std::vector<std::string> seeds{read_whole(
      test::vorbis_file(test::silent_setup(), std::vector<std::string>(20, test::silent_packet())), 2)};
  for (uint32_t seed = 1; seed <= 60 && seeds.size() < 12; ++seed) {
    std::mt19937 random(seed);
    const auto file = test::random_vorbis(random);
    if (file.size() < 4000)
      seeds.push_back(read_whole(file, static_cast<uint8_t>(seed)));
  }
  return seeds;
}

} // namespace

extern const Target kWav{"wav", run<AudioFormat::wav>, wav_seeds};
extern const Target kMp3{"mp3", run<AudioFormat::mp3>, no_seeds};
extern const Target kFlac{"flac", run<AudioFormat::flac>, no_seeds};
extern const Target kVorbis{"vorbis", run<AudioFormat::vorbis>, vorbis_seeds};

} // namespace voxgate::fuzz
