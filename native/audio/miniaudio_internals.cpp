// Compiles the decoders, once and without the warnings of this project. miniaudio finds Vorbis only if
// stb_vorbis is declared first. The code of stb_vorbis is a hardened copy: see native/patches/stb_vorbis.
#include <algorithm>
#include <string_view>

#define STB_VORBIS_HEADER_ONLY
#include VOXGATE_STB_VORBIS // NOLINT(bugprone-suspicious-include): the decoder is one file

#define MINIAUDIO_IMPLEMENTATION
#include "audio/miniaudio_config.h"

#include "audio/decoder_limits.h"
#include "audio/frames.h"

#undef STB_VORBIS_HEADER_ONLY
#include VOXGATE_STB_VORBIS // NOLINT(bugprone-suspicious-include): as above

namespace voxgate {
namespace {

// The tag in the first frame counts the frames of one file, behind which another one may be joined. miniaudio
// would end there. What the encoder filled the last frame up with is left out.
void pass_tagged_end(ma_dr_mp3& mp3) {
  const ma_uint64 padding = mp3.paddingInPCMFrames;
  const ma_uint64 total = mp3.totalPCMFrameCount;
  if (total == MA_UINT64_MAX || total <= padding || mp3.currentPCMFrame < total - padding)
    return;
  mp3.totalPCMFrameCount = MA_UINT64_MAX;
  for (ma_uint64 rest = padding; rest > 0;) {
    const auto skipped = static_cast<ma_uint32>(std::min<ma_uint64>(rest, mp3.pcmFramesRemainingInMP3Frame));
    mp3.pcmFramesConsumedInMP3Frame += skipped;
    mp3.pcmFramesRemainingInMP3Frame -= skipped;
    rest -= skipped;
    if (rest > 0 && ma_dr_mp3_decode_next_frame(&mp3) == 0)
      return;
  }
}

// True where a file ends and another begins, or a tag stands: between two files miniaudio may miss a frame.
bool has_tag(std::string_view bytes) {
  const auto holds = [&](std::string_view mark) { return bytes.find(mark) != std::string_view::npos; };
  return holds("TAG") || holds("ID3") || holds("Xing") || holds("Info") || holds("VBRI");
}

// Where the next frame of an MP3 is looked for, in bytes from the start of the file.
ma_int64 place_of(ma_mp3& mp3) {
  ma_int64 read = 0;
  mp3.onTell(mp3.pReadSeekTellUserData, &read);
  return read - static_cast<ma_int64>(mp3.dr.dataSize);
}

bool has_tag_at(ma_mp3& mp3, ma_int64 place, ma_int64 length) {
  ma_int64 before = 0;
  char begin[2048]; // more than the largest frame
  size_t read = 0;
  mp3.onTell(mp3.pReadSeekTellUserData, &before);
  mp3.onSeek(mp3.pReadSeekTellUserData, place, ma_seek_origin_start);
  mp3.onRead(mp3.pReadSeekTellUserData, begin, std::min<size_t>(sizeof begin, length), &read);
  mp3.onSeek(mp3.pReadSeekTellUserData, before, ma_seek_origin_start);
  return has_tag({begin, read});
}

// How much the frames so far count, from frame to frame.
constexpr double kMp3Kept = 0.997;

// The samples that the bytes before the frame just decoded were, which began at `place`.
ma_uint64 lost_before(ma_mp3& file, ma_int64 place, const Mp3Mean& mean) {
  const auto& mp3 = file.dr;
  const ma_uint8* header = mp3.decoder.header;
  const ma_int64 bytes = ma_dr_mp3_hdr_frame_bytes(header, mp3.decoder.free_format_bytes);
  const ma_int64 skipped = place_of(file) - place - bytes - ma_dr_mp3_hdr_padding(header);
  if (bytes <= 0 || skipped < bytes / 2 || has_tag_at(file, place, skipped))
    return 0;
  const double per_byte = mean.bytes > 0 ? mean.samples / mean.bytes
                                         : ma_dr_mp3_hdr_frame_samples(header) / static_cast<double>(bytes);
  return static_cast<ma_uint64>(static_cast<double>(skipped) * per_byte);
}

void add_to_mean(const ma_dr_mp3& mp3, Mp3Mean& mean) {
  const ma_uint8* header = mp3.decoder.header;
  const int bytes =
      ma_dr_mp3_hdr_frame_bytes(header, mp3.decoder.free_format_bytes) + ma_dr_mp3_hdr_padding(header);
  mean.bytes = mean.bytes * kMp3Kept + bytes;
  mean.samples = mean.samples * kMp3Kept + ma_dr_mp3_hdr_frame_samples(header);
}

// Reads to the next frame whose checksums are right. miniaudio takes most damage for the end of the file.
bool next_flac_frame(ma_dr_flac& flac) {
  for (;;) {
    const ma_dr_flac_bs before = flac.bs;
    const bool is_header =
        ma_dr_flac__read_next_flac_frame_header(&flac.bs, flac.bitsPerSample, &flac.currentFLACFrame.header);
    if (is_header && ma_dr_flac__decode_flac_frame(&flac) == MA_SUCCESS)
      return true;
    const bool at_end = flac.bs.consumedBits == before.consumedBits && flac.bs.cache == before.cache &&
                        flac.bs.nextL2Line == before.nextL2Line;
    if (at_end)
      return false;
  }
}

// The samples that are missing between two frames; none where the numbers begin anew.
ma_uint64 lost_between(const FlacFrame& last, const FlacFrame& next, bool counts_samples) {
  if (last.samples == 0)
    return 0;
  const ma_uint64 expected = last.number + (counts_samples ? last.samples : 1);
  if (next.number <= expected)
    return 0;
  return (next.number - expected) * (counts_samples ? 1 : last.samples);
}

} // namespace

SampleBlock read_mp3(ma_decoder& decoder, std::span<float> output, Mp3Mean& mean) {
  auto& file = *static_cast<ma_mp3*>(decoder.pBackend);
  auto& mp3 = file.dr;
  pass_tagged_end(mp3);
  uint64_t lost = 0;
  if (mp3.pcmFramesRemainingInMP3Frame == 0) {
    const ma_int64 place = place_of(file);
    const bool is_first = mp3.currentPCMFrame == 0; // which may need parts of frames that were cut off
    if (ma_dr_mp3_decode_next_frame(&mp3) == 0)
      return {};
    lost = is_first ? 0 : lost_before(file, place, mean);
    add_to_mean(mp3, mean);
  }
  // The reader copies as many samples of each moment as `channels` says, and uses the number for nothing
  // else.
  mp3.channels = mp3.mp3FrameChannels;
  const ma_uint64 frames =
      std::min<ma_uint64>(mp3.pcmFramesRemainingInMP3Frame, output.size() / kMp3Channels);
  const ma_uint64 read = ma_dr_mp3_read_pcm_frames_f32(&mp3, frames, output.data());
  return {static_cast<size_t>(read), static_cast<int>(mp3.mp3FrameChannels),
          static_cast<int>(mp3.mp3FrameSampleRate), lost};
}

SampleBlock read_flac(ma_decoder& decoder, std::span<float> output, FlacFrame& last) {
  auto& flac = *static_cast<ma_flac*>(decoder.pBackend)->dr;
  const auto& frame = flac.currentFLACFrame;
  uint64_t lost = 0;
  if (frame.pcmFramesRemaining == 0) {
    if (!next_flac_frame(flac))
      return {};
    const auto& header = frame.header;
    const bool counts_samples = header.pcmFrameNumber > 0;
    const FlacFrame next{counts_samples ? header.pcmFrameNumber : header.flacFrameNumber,
                         header.blockSizeInPCMFrames};
    lost = lost_between(last, next, counts_samples);
    last = next;
  }
  const ma_uint64 frames = std::min<ma_uint64>(frame.pcmFramesRemaining, output.size() / flac.channels);
  const ma_uint64 read = ma_dr_flac_read_pcm_frames_f32(&flac, frames, output.data());
  return {static_cast<size_t>(read), flac.channels, static_cast<int>(flac.sampleRate), lost};
}

uint64_t named_frames_flac(ma_decoder& decoder) {
  return static_cast<ma_flac*>(decoder.pBackend)->dr->totalPCMFrameCount;
}

uint64_t unread_frames_mp3(ma_decoder& decoder) {
  const auto& mp3 = static_cast<ma_mp3*>(decoder.pBackend)->dr;
  const ma_uint64 total = mp3.totalPCMFrameCount;
  const ma_uint64 read = mp3.currentPCMFrame + mp3.paddingInPCMFrames;
  return total == MA_UINT64_MAX || total <= read ? 0 : total - read;
}

} // namespace voxgate
