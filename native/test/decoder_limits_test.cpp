#include "harness.h"

#include "audio/audio_file.h"
#include "audio/decoder_limits.h"
#include "vorbis.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <string_view>
#include <thread>
#ifdef __SANITIZE_ADDRESS__
// These come from <sanitizer/allocator_interface.h>, which not every compiler's package brings.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void*);
#endif

using namespace voxgate;
using namespace voxgate::test;

namespace {

#ifdef __SANITIZE_ADDRESS__
std::atomic<int64_t> g_bytes{0}; // allocated minus freed bytes since the last start
std::atomic<int64_t> g_peak{0};

void note_malloc(const volatile void*, size_t size) {
  const int64_t now = g_bytes += static_cast<int64_t>(size);
  for (int64_t peak = g_peak; now > peak && !g_peak.compare_exchange_weak(peak, now);) {
  }
}

void note_free(const volatile void* block) {
  if (block != nullptr)
    g_bytes -= static_cast<int64_t>(__sanitizer_get_allocated_size(block));
}
#endif

// Measures the most bytes that were allocated at a time while `action` ran, beyond those before it.
int64_t peak_of(const std::function<void()>& action) {
#ifdef __SANITIZE_ADDRESS__
  static const int installed = __sanitizer_install_malloc_and_free_hooks(note_malloc, note_free);
  CHECK(installed > 0);
  g_bytes = g_peak = 0;
  action();
  return g_peak;
#else
  throw Skipped{"only AddressSanitizer tells what is allocated"};
#endif
}

size_t samples_of(const std::string& bytes, AudioFormat format = AudioFormat::vorbis) {
  const auto path = temporary("audio");
  write_file(path, bytes);
  AudioFile file(path, format);
  size_t count = 0;
  for (auto block = file.read(100000); !block.empty(); block = file.read(100000)) {
    CHECK(std::ranges::all_of(block, [](float s) { return std::isfinite(s) && std::fabs(s) <= 1; }));
    count += block.size();
  }
  return count;
}

// Makes as many codebooks as there can be, each of 16 million entries.
std::string many_large_codebooks(int count) {
  Bits setup = setup_of(count);
  for (int i = 0; i < count; ++i) {
    put_ordered_codebook(setup, 1, 0xFFFFFF, 24);
    put_no_lookup(setup);
  }
  return vorbis_file(setup.bytes(), {});
}

// Makes few entries, each of which stands for thousands of values.
std::string many_large_lookups(int count) {
  Bits setup = setup_of(count);
  for (int i = 0; i < count; ++i) {
    put_ordered_codebook(setup, 4096, 4095, 12);
    put_lookup(setup, 1);
  }
  return vorbis_file(setup.bytes(), {});
}

// Makes one codebook that each of 64 residues unfolds into rows of its own.
std::string many_rows(uint32_t entries) {
  Bits setup = setup_of(1);
  put_ordered_codebook(setup, 1, entries, 24);
  put_no_lookup(setup);
  setup.put(0, 6).put(0, 16);
  setup.put(0, 6).put(1, 16).put(0, 5).put(0, 2).put(6, 4);
  setup.put(63, 6);
  for (int i = 0; i < 64; ++i)
    setup.put(0, 16).put(0, 24).put(0, 24).put(0, 24).put(0, 6).put(0, 8).put(0, 4);
  return vorbis_file(setup.bytes(), {});
}

// Makes two MP3 frames, so that the file passes for MP3, then headers that each announce a frame of a length
// which the decoder has to look for and never finds: no three of a kind stand at equal distances.
std::string endless_search(size_t bytes) {
  constexpr size_t kHeaders = 4096;
  constexpr size_t kSearched = 576; // headers: 2304 bytes
  constexpr std::string_view versions = "\xFB\xF3\xE3\xFD\xFF\xF5\xF7";
  std::vector<size_t> kinds;
  while (kinds.size() < kHeaders) {
    const auto fits = [&](size_t kind) {
      for (size_t k = 1; k <= std::min(kSearched, kinds.size() / 2); ++k)
        if (kinds[kinds.size() - k] == kind && kinds[kinds.size() - 2 * k] == kind)
          return false;
      return true;
    };
    size_t kind = 0;
    while (!fits(kind))
      ++kind;
    CHECK(kind < 3 * versions.size());
    kinds.push_back(kind);
  }
  const std::string frame = std::string("\xFF\xFB\x90\x00", 4) + std::string(413, '\0');
  std::string file = frame + frame;
  for (size_t i = 0; file.size() < bytes; ++i) {
    const size_t kind = kinds[i % kHeaders];
    file += '\xFF';
    file += versions[kind % versions.size()];
    file += static_cast<char>(kind / versions.size() << 2);
    file += '\0';
  }
  return file;
}

// Makes a FLAC header with the largest possible block and a table of nearly a million places to seek to.
std::string large_flac() {
  std::string file("fLaC\x00\x00\x00\x22", 8);
  file += std::string("\xFF\xFF\xFF\xFF\x00\x00\x00\x00\x00\x00", 10); // block and frame sizes
  file += std::string("\x0A\xC4\x4F\xF0\x00\x00\x00\x00", 8);          // 44.1 kHz, 8 channels, 32 bits
  file += std::string(16, '\0');
  return file + std::string("\x83\xFF\xFF\xFF", 4) + std::string(60, '\0');
}

} // namespace

TEST("audio: a decoder gets as many blocks and bytes as it may have, and no more") {
  const CancelToken never;
  DecoderLimits small;
  {
    const DecoderLimits::Scope scope(small, never);
    for (int block = 0; block < 65536; ++block)
      CHECK(small.allocate(1) != nullptr);
    CHECK(small.allocate(1) == nullptr);
  }
  DecoderLimits large;
  const DecoderLimits::Scope scope(large, never);
  constexpr size_t kMost = (size_t{32} << 20) - 96; // a block costs 96 bytes beside its own
  CHECK(large.allocate(kMost + 1) == nullptr);
  void* block = large.allocate(kMost);
  CHECK(block != nullptr && large.allocate(0) == nullptr);
  large.release(block);
  CHECK(large.allocate(1) != nullptr);
}

TEST("vorbis: the codebooks of a file have as many entries and values as they may, and no more") {
  DecoderLimits entries;
  CHECK(entries.admit_codebook(262144, 1));
  CHECK(!entries.admit_codebook(1, 1));
  DecoderLimits values;
  CHECK(values.admit_codebook(2048, 1024));
  CHECK(!values.admit_codebook(1, 1));
}

TEST("vorbis: a small file decodes") {
  CHECK(samples_of(vorbis_file(silent_setup(), std::vector<std::string>(101, silent_packet()))) == 3200);
}

TEST("vorbis: a set-up header of a few kB that asks for gigabytes is bad_audio, and gets next to nothing") {
  for (const auto& file : {many_large_codebooks(255), many_large_lookups(255), many_rows(0xFFFFFF),
                           many_rows(200000), many_rows(1000)}) {
    CHECK(file.size() < 6000);
    const auto peak = peak_of([&] { CHECK(failure_of([&] { samples_of(file); }) == StatusCode::bad_audio); });
    CHECK(peak < int64_t{36} << 20);
  }
}

TEST("audio: a FLAC header with the largest claims gets less than 36 MB") {
  const auto peak = peak_of([&] {
    CHECK(failure_of([&] { samples_of(large_flac(), AudioFormat::flac); }) == StatusCode::bad_audio);
  });
  CHECK(peak > int64_t{2} << 20 && peak < int64_t{36} << 20);
}

TEST("vorbis: headers that follow the rules to their extremes never crash") {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto file = random_vorbis(random);
    try {
      samples_of(file);
    } catch (const Failure& failure) {
      CHECK(failure.status().code == StatusCode::bad_audio);
    }
  }
}

TEST("vorbis: a vector that reaches over the end of the last channel is cut there") {
  Bits setup = setup_of(2);
  put_ordered_codebook(setup, 1, 2, 1);
  put_no_lookup(setup);
  put_ordered_codebook(setup, 2, 2, 1);
  setup.put(2, 4).put(0, 32).put(0, 32).put(0, 4).put(0, 1).put(0, 4); // two vectors of two zeros
  Bits packet;
  packet.put(0, 1).put(1, 1).put(0, 16).put(1, 1).put(0, 16); // audio; both channels have a floor
  packet.put(0, 1).put(~uint64_t{0}, 32);                     // the classification; always the last vector
  // Two channels of 32 values are filled from the second value on, so the last vector has room for half of
  // it.
  const auto header = finish_setup(setup, 2, 1, 64);
  CHECK(samples_of(vorbis_file(header, {packet.bytes(), packet.bytes()}, 2)) == 32);
}

TEST("vorbis: a codebook of many dimensions has as many values as it says") {
  Bits setup = setup_of(2);
  put_ordered_codebook(setup, 1, 2, 1);
  put_no_lookup(setup);
  put_ordered_codebook(setup, 200, 2, 1); // the largest number whose power of 200 is no more than 2 is 1
  put_lookup(setup, 1);
  const auto header = finish_setup(setup, 0, 0, 0);
  CHECK(samples_of(vorbis_file(header, std::vector<std::string>(101, silent_packet()))) == 3200);
}

TEST("audio: a decoder that finds no sample is stopped after a second of work") {
  const auto file = endless_search(12 << 20);
  const auto before = std::clock();
  CHECK(failure_of([&] { samples_of(file, AudioFormat::mp3); }) == StatusCode::bad_audio);
  CHECK(std::clock() - before < 4 * CLOCKS_PER_SEC);
}

TEST("audio: a chunk that is shorter than its content is skipped in no time") {
  std::string file("RIFF\x64\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3E\0\0\0\x7D\0\0\x02\0\x10\0", 36);
  file += std::string("fact\0\0\0\0", 8) + std::string(20, '\0'); // a size of 0, and the number of samples
  const auto before = std::clock();
  CHECK(failure_of([&] { samples_of(file, AudioFormat::wav); }) == StatusCode::bad_audio);
  CHECK(std::clock() - before < CLOCKS_PER_SEC / 2);
}

TEST("audio: opening ends soon after its token is set") {
  const auto path = temporary("audio");
  write_file(path, endless_search(12 << 20));
  CancelToken cancel;
  std::clock_t left = 0;
  std::thread client([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    left = std::clock();
    cancel.cancel();
  });
  const auto code = failure_of([&] { AudioFile file(path, AudioFormat::mp3, cancel); });
  const auto worked = std::clock() - left;
  client.join();
  CHECK(code == StatusCode::cancelled);
  CHECK(worked < CLOCKS_PER_SEC / 2);
}
