#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace voxgate {

enum class AudioFormat { wav, mp3, flac, vorbis };

const char* audio_format_name(AudioFormat format);

// Reads up to this many bytes from the start; a tag larger than that hides what follows it.
inline constexpr size_t kSniffBytes = size_t{64} * 1024;

// By content alone; `head` starts behind an ID3 tag. Nothing for what is not one of the four, also not for
// Opus in Ogg, AAC or AIFF.
std::optional<AudioFormat> sniff_audio(std::span<const uint8_t> head);

// Length of an ID3v2 tag at the start, 0 when there is none. Tags may hold megabytes of cover art.
size_t id3_tag_bytes(std::span<const uint8_t> head);

} // namespace voxgate
