#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace voxgate {

enum class AudioFormat { wav, mp3, flac, vorbis };

const char* audio_format_name(AudioFormat format);

// The number of bytes to read for sniff_audio and for tag_bytes.
inline constexpr size_t kSniffBytes = size_t{64} * 1024;

// The format of a file by its content alone. `head` starts after a tag. Returns nullopt for all other
// formats, such as Opus in Ogg, AAC and AIFF.
std::optional<AudioFormat> sniff_audio(std::span<const uint8_t> head);

// The number of zeros at the start. Some files have many before their first tag or frame.
size_t zero_bytes(std::span<const uint8_t> head);

// The length in bytes of an ID3v2 or APEv2 tag at the start; 0 if there is none. Tags may hold megabytes of
// cover art.
size_t tag_bytes(std::span<const uint8_t> head);

} // namespace voxgate
