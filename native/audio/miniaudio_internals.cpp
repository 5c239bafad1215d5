// Compiles the decoders, once and without the warnings of this project. miniaudio finds Vorbis only if
// stb_vorbis is declared first. The code of stb_vorbis is a hardened copy: see native/patches/stb_vorbis.
#include <algorithm>

#define STB_VORBIS_HEADER_ONLY
#include VOXGATE_STB_VORBIS // NOLINT(bugprone-suspicious-include): the decoder is one file

#define MINIAUDIO_IMPLEMENTATION
#include "audio/miniaudio_config.h"

#include "audio/decoder_limits.h"
#include "audio/mp3_frames.h"

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

} // namespace

SampleBlock read_mp3(ma_decoder& decoder, std::span<float> output) {
  auto& mp3 = static_cast<ma_mp3*>(decoder.pBackend)->dr;
  pass_tagged_end(mp3);
  if (mp3.pcmFramesRemainingInMP3Frame == 0 && ma_dr_mp3_decode_next_frame(&mp3) == 0)
    return {};
  // The reader copies as many samples of each moment as `channels` says, and uses the number for nothing
  // else.
  mp3.channels = mp3.mp3FrameChannels;
  const ma_uint64 frames =
      std::min<ma_uint64>(mp3.pcmFramesRemainingInMP3Frame, output.size() / kMp3Channels);
  const ma_uint64 read = ma_dr_mp3_read_pcm_frames_f32(&mp3, frames, output.data());
  return {static_cast<size_t>(read), static_cast<int>(mp3.mp3FrameChannels),
          static_cast<int>(mp3.mp3FrameSampleRate)};
}

} // namespace voxgate
