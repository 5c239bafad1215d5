#include "whisper_fixtures.h"

#include "harness.h"
#include "synthetic_whisper.h"

#include "audio/audio_file.h"
#include "backends/whisper/whisper_backend.h"

#include <cmath>

namespace voxgate::test {

std::unique_ptr<Backend> load_synthetic(unsigned seed, int threads) {
  const auto path = temporary("synthetic.bin");
  write_file(path, synthetic_whisper(seed));
  return load_whisper({"whisper", path, "cpu", threads}, CancelToken());
}

std::vector<float> noise(size_t count) {
  std::vector<float> samples(count);
  for (size_t i = 0; i < count; ++i)
    samples[i] = 0.2F * std::sin(static_cast<float>(i * i % 7919));
  return samples;
}

std::vector<float> speech() {
  AudioFile file(VOXGATE_SAMPLE_MP3, AudioFormat::mp3);
  return file.read(16000 * 30);
}

ChunkOptions english() {
  ChunkOptions options;
  options.language = "en";
  options.max_tokens = 30;
  return options;
}

std::string text_of(const std::vector<Segment>& segments) {
  std::string text;
  for (const auto& segment : segments) {
    for (const auto& token : segment.tokens)
      text += token.bytes;
  }
  return text;
}

size_t count_tokens(const std::vector<Segment>& segments) {
  size_t count = 0;
  for (const auto& segment : segments)
    count += segment.tokens.size();
  return count;
}

void check_times(const std::vector<Segment>& segments, int64_t limit_ms) {
  int64_t last = 0;
  for (const auto& segment : segments) {
    CHECK(segment.start_ms >= 0 && segment.start_ms <= segment.end_ms && segment.end_ms <= limit_ms);
    for (const auto& token : segment.tokens) {
      CHECK(token.start_ms >= last && token.start_ms <= token.end_ms && token.end_ms <= limit_ms);
      last = token.start_ms;
    }
  }
}

} // namespace voxgate::test
