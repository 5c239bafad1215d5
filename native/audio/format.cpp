#include "audio/format.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace voxgate {
namespace {

using Bytes = std::span<const uint8_t>;

bool has_at(Bytes bytes, size_t offset, std::string_view text) {
  return bytes.size() >= offset + text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

// The length in bytes of the MPEG layer III frame whose header is at `offset`; 0 if there is none. Layers I
// and II are not supported, and neither is AAC, which has the same sync word with layer bits of zero.
size_t mp3_frame_bytes(Bytes bytes, size_t offset) {
  if (bytes.size() < offset + 4 || bytes[offset] != 0xFF || (bytes[offset + 1] & 0xE0) != 0xE0)
    return 0;
  const int version = (bytes[offset + 1] >> 3) & 3; // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
  const int layer = (bytes[offset + 1] >> 1) & 3;
  const int bitrate_index = bytes[offset + 2] >> 4;
  const int rate_index = (bytes[offset + 2] >> 2) & 3;
  const int padding = (bytes[offset + 2] >> 1) & 1;
  if (version == 1 || layer != 1 || bitrate_index == 0 || bitrate_index == 15 || rate_index == 3)
    return 0;
  constexpr std::array<int, 15> kbit_mpeg1{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320};
  constexpr std::array<int, 15> kbit_mpeg2{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160};
  constexpr std::array<int, 3> rates{44100, 48000, 32000};
  const auto index = static_cast<size_t>(bitrate_index);
  const int rate = rates[static_cast<size_t>(rate_index)] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
  const int bits = 1000 * (version == 3 ? kbit_mpeg1[index] : kbit_mpeg2[index]);
  const int length = (version == 3 ? 144 : 72) * bits / rate + padding; // at most 2,881
  return static_cast<size_t>(length);
}

constexpr size_t kApeHeaderBytes = 32;
constexpr size_t kMaxSearchBytes = 4096;

// True if there are two frames in a row within the first bytes that are not zero, because one alone occurs by
// chance in any data.
bool looks_like_mp3(Bytes bytes) {
  const size_t zeros = zero_bytes(bytes);
  for (size_t i = zeros; i < std::min(bytes.size(), zeros + kMaxSearchBytes); ++i) {
    const size_t length = mp3_frame_bytes(bytes, i);
    if (length == 0)
      continue;
    const bool only_frame = i == 0 && bytes.size() <= length;
    if (only_frame || mp3_frame_bytes(bytes, i + length) != 0)
      return true;
  }
  return false;
}

} // namespace

const char* audio_format_name(AudioFormat format) {
  switch (format) {
  case AudioFormat::wav:
    return "wav";
  case AudioFormat::mp3:
    return "mp3";
  case AudioFormat::flac:
    return "flac";
  case AudioFormat::vorbis:
    return "vorbis";
  }
  return "";
}

size_t zero_bytes(Bytes head) {
  const auto first = std::ranges::find_if(head, [](uint8_t byte) { return byte != 0; });
  return static_cast<size_t>(first - head.begin());
}

size_t tag_bytes(Bytes head) {
  if (head.size() >= kApeHeaderBytes && has_at(head, 0, "APETAGEX")) {
    size_t size = 0;
    for (size_t i = 16; i-- > 12;)
      size = size << 8 | head[i];
    return kApeHeaderBytes + size;
  }
  if (head.size() < 10 || !has_at(head, 0, "ID3"))
    return 0;
  size_t size = 0;
  for (size_t i = 6; i < 10; ++i)
    size = size << 7 | (head[i] & 0x7F);
  const bool has_footer = (head[5] & 0x10) != 0;
  return size + (has_footer ? 20 : 10);
}

std::optional<AudioFormat> sniff_audio(Bytes head) {
  const bool riff = has_at(head, 0, "RIFF") || has_at(head, 0, "RIFX") || has_at(head, 0, "RF64");
  if (riff && has_at(head, 8, "WAVE"))
    return AudioFormat::wav;
  if (has_at(head, 0, "riff\x2E\x91\xCF\x11"))
    return AudioFormat::wav; // Wave64 starts with a GUID
  if (has_at(head, 0, "fLaC"))
    return AudioFormat::flac;
  if (has_at(head, 0, "OggS")) {
    if (has_at(head, 28, "\x01vorbis"))
      return AudioFormat::vorbis;
    return std::nullopt;
  }
  if (looks_like_mp3(head))
    return AudioFormat::mp3;
  return std::nullopt;
}

} // namespace voxgate
