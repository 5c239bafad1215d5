#include "audio/audio_file.h"

#include "audio/decoder_limits.h"
#include "audio/miniaudio_config.h"
#include "audio/mp3_frames.h"
#include "audio/resampler.h"
#include "backend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

namespace voxgate {
namespace {

constexpr int kMinRate = 2000;
constexpr int kMaxRate = 384000;
constexpr size_t kBlockFrames = 4096;
// The energy of the average of two channels over that of half their difference, as the average becomes too
// weak to be heard, and as it is heard again. `src/audio/mid-side.ts` has the same numbers for what ffmpeg
// decodes.
constexpr double kCancelled = 1.0 / 64;
constexpr double kHeardAgain = 1.0 / 4;
constexpr float kFadeSec = 0.01F; // from one to the other without a click
// Decoders share a few threads, so no file keeps one for longer than this while others wait.
constexpr std::chrono::milliseconds kMaxTurn{50};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePtr = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void bad_audio(const std::string& reason) {
  throw Failure(StatusCode::bad_audio, reason);
}

std::vector<uint8_t> read_at(std::FILE* file, size_t offset) {
  std::vector<uint8_t> bytes(kSniffBytes);
  if (std::fseek(file, static_cast<long>(offset), SEEK_SET) != 0)
    return {};
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
  return bytes;
}

AudioFormat sniff_file(std::FILE* file) {
  auto head = read_at(file, 0);
  if (head.empty())
    bad_audio("The audio file is empty");
  if (const size_t tag = id3_tag_bytes(head); tag > 0)
    head = read_at(file, tag);
  const auto format = sniff_audio(head);
  if (!format)
    bad_audio("The file is not WAV, MP3, FLAC or Ogg Vorbis audio");
  return *format;
}

ma_encoding_format encoding(AudioFormat format) {
  switch (format) {
  case AudioFormat::wav:
    return ma_encoding_format_wav;
  case AudioFormat::mp3:
    return ma_encoding_format_mp3;
  case AudioFormat::flac:
    return ma_encoding_format_flac;
  case AudioFormat::vorbis:
    return ma_encoding_format_vorbis;
  }
  return ma_encoding_format_unknown;
}

// A float file may hold any value, and one NaN in a filter would silence the rest of the file.
float sane(float sample) {
  return std::isfinite(sample) ? std::clamp(sample, -1.0F, 1.0F) : 0.0F;
}

ma_allocation_callbacks allocation(DecoderLimits& limits) {
  return {&limits, [](size_t size, void* held) { return static_cast<DecoderLimits*>(held)->allocate(size); },
          [](void* block, size_t size, void* held) {
            return static_cast<DecoderLimits*>(held)->reallocate(block, size);
          },
          [](void* block, void* held) { static_cast<DecoderLimits*>(held)->release(block); }};
}

// An open file that miniaudio's decoders can read. `calls` must be the first member, because miniaudio looks
// for the functions there.
struct Input {
  Input(FilePtr opened, uint64_t file_bytes) : file(std::move(opened)), size(static_cast<long>(file_bytes)) {
    calls.onOpen = [](ma_vfs* self, const char*, ma_uint32, ma_vfs_file* handle) {
      *handle = static_cast<Input*>(self)->file.get();
      return MA_SUCCESS;
    };
    calls.onClose = [](ma_vfs*, ma_vfs_file) { return MA_SUCCESS; };
    calls.onRead = [](ma_vfs*, ma_vfs_file handle, void* to, size_t bytes, size_t* read) {
      *read = 0;
      const auto* limits = DecoderLimits::current();
      if (limits == nullptr || !limits->admit_input())
        return MA_AT_END;
      *read = std::fread(to, 1, bytes, static_cast<std::FILE*>(handle));
      return *read > 0 ? MA_SUCCESS : MA_AT_END;
    };
    // A chunk of WAV that is shorter than its content makes miniaudio skip 2^64 bytes, in thousands of
    // millions of steps. None begins behind the end of the file.
    calls.onSeek = [](ma_vfs* self, ma_vfs_file handle, ma_int64 offset, ma_seek_origin origin) {
      const auto* limits = DecoderLimits::current();
      const bool behind_end =
          origin == ma_seek_origin_current && offset > 0 &&
          std::ftell(static_cast<std::FILE*>(handle)) > static_cast<const Input*>(self)->size;
      if (behind_end || limits == nullptr || !limits->admit_input())
        return MA_BAD_SEEK;
      const int whence = origin == ma_seek_origin_start ? SEEK_SET
                         : origin == ma_seek_origin_end ? SEEK_END
                                                        : SEEK_CUR;
      const bool moved = std::fseek(static_cast<std::FILE*>(handle), static_cast<long>(offset), whence) == 0;
      return moved ? MA_SUCCESS : MA_BAD_SEEK;
    };
    calls.onTell = [](ma_vfs*, ma_vfs_file handle, ma_int64* offset) {
      *offset = std::ftell(static_cast<std::FILE*>(handle));
      return *offset < 0 ? MA_IO_ERROR : MA_SUCCESS;
    };
  }

  ma_vfs_callbacks calls{};
  FilePtr file;
  long size; // in bytes
};

} // namespace

class AudioFile::Decoder {
 public:
  Decoder(const std::string& path, FilePtr file, uint64_t bytes, AudioFormat format, int channel,
          const CancelToken& cancel)
      : input_(std::move(file), bytes) {
    // The decoder keeps the channels and the rate of the file, because the samples must be made sane before
    // any filter gets them.
    auto config = ma_decoder_config_init(ma_format_f32, 0, 0);
    config.encodingFormat = encoding(format);
    config.allocationCallbacks = allocation(limits_);
    const DecoderLimits::Scope scope(limits_, cancel);
    // stb_vorbis opens the file itself, because otherwise it reads the whole header again and again.
    const auto result = format == AudioFormat::vorbis
                            ? ma_decoder_init_file(path.c_str(), &config, &opened_.decoder)
                            : ma_decoder_init_vfs(&input_, path.c_str(), &config, &opened_.decoder);
    opened_.is_open = result == MA_SUCCESS;
    cancel.check();
    if (!opened_.is_open)
      bad_audio(std::string("The file is broken or not ") + audio_format_name(format) + " audio");
    ma_format sample_format = ma_format_unknown;
    ma_uint32 file_channels = 0;
    ma_uint32 file_rate = 0;
    ma_decoder_get_data_format(&opened_.decoder, &sample_format, &file_channels, &file_rate, nullptr, 0);
    if (sample_format != ma_format_f32 || file_channels < 1 || file_channels > kMaxChannels)
      bad_audio("The audio has " + std::to_string(file_channels) + " channels; 1 to 32 can be read");
    if (file_rate < kMinRate || file_rate > kMaxRate)
      bad_audio("The audio has a sample rate of " + std::to_string(file_rate) +
                " Hz; 2000 to 384000 can be read");
    channels = static_cast<int>(file_channels);
    rate = static_cast<int>(file_rate);
    channel_ = channel;
    is_mp3_ = format == AudioFormat::mp3;
    block_rate_ = rate;
    resampler_ = std::make_unique<Resampler>(rate);
    frames_.resize(kBlockFrames * std::max<size_t>(file_channels, kMp3Channels));
    mono_.reserve(kBlockFrames);
  }

  // The duration in seconds if the header holds it, else -1. For MP3, miniaudio would decode the whole file.
  double header_duration(AudioFormat format, uint64_t file_bytes) {
    if (format != AudioFormat::wav && format != AudioFormat::flac)
      return -1;
    ma_uint64 frames = 0;
    if (ma_decoder_get_length_in_pcm_frames(&opened_.decoder, &frames) != MA_SUCCESS || frames == 0)
      return -1;
    // Programs that write to a pipe leave a huge placeholder. No WAV coding has less than four bits a sample.
    if (format == AudioFormat::wav && frames > 4 * file_bytes)
      return -1;
    return static_cast<double>(frames) / rate;
  }

  // Appends one block of samples; false if there are no more.
  bool next(std::vector<float>& output, const CancelToken& cancel) {
    const DecoderLimits::Scope scope(limits_, cancel);
    const auto block = is_mp3_ ? read_mp3(opened_.decoder, frames_) : read_block();
    cancel.check(); // an aborted read must not pass for the end of the file
    const size_t before = output.size();
    if (block.frames == 0 || block.rate != block_rate_)
      resampler_->finish(output);
    if (block.frames > 0) {
      if (block.rate != block_rate_)
        resampler_->begin(block.rate);
      block_rate_ = block.rate;
      to_mono(block);
      resampler_->process(mono_, output);
    }
    // The filter overshoots 1 at steps of full scale.
    for (size_t i = before; i < output.size(); ++i)
      output[i] = sane(output[i]);
    return block.frames > 0;
  }

  int channels = 0;
  int rate = 0;

 private:
  SampleBlock read_block() {
    ma_uint64 read = 0;
    ma_decoder_read_pcm_frames(&opened_.decoder, frames_.data(), kBlockFrames, &read);
    return {static_cast<size_t>(read), channels, rate};
  }
  void to_mono(const SampleBlock& block) {
    const auto width = static_cast<size_t>(block.channels);
    const bool is_one = channel_ >= 0 && channel_ < block.channels;
    const size_t first = is_one ? static_cast<size_t>(channel_) : 0;
    const size_t mixed = is_one ? 1 : width;
    mono_.clear();
    for (size_t frame = 0; frame < block.frames; ++frame) {
      float sum = 0;
      for (size_t channel = first; channel < first + mixed; ++channel)
        sum += sane(frames_[frame * width + channel]);
      mono_.push_back(sum / static_cast<float>(mixed));
    }
    if (mixed == 2)
      restore_cancelled(block);
  }

  // Two channels of opposite phase cancel each other in their average. Where it is far weaker than half their
  // difference, the channels are nearly equal but for the sign, so that difference is what each of them
  // holds.
  void restore_cancelled(const SampleBlock& block) {
    side_.clear();
    double mid_energy = 0;
    double side_energy = 0;
    for (size_t frame = 0; frame < block.frames; ++frame) {
      side_.push_back((sane(frames_[2 * frame]) - sane(frames_[2 * frame + 1])) / 2);
      mid_energy += mono_[frame] * mono_[frame];
      side_energy += side_[frame] * side_[frame];
    }
    cancels_ = mid_energy < side_energy * (cancels_ ? kHeardAgain : kCancelled);
    const float step = side_share_ < 0 ? 1 : 1 / (kFadeSec * static_cast<float>(block.rate));
    side_share_ = std::max(side_share_, 0.0F);
    for (size_t frame = 0; frame < block.frames && (cancels_ || side_share_ > 0); ++frame) {
      side_share_ = std::clamp(side_share_ + (cancels_ ? step : -step), 0.0F, 1.0F);
      mono_[frame] += side_share_ * (side_[frame] - mono_[frame]);
    }
  }

  // A member of its own, so that the decoder is closed where a constructor throws, too.
  struct Opened {
    explicit Opened(DecoderLimits& of) : limits(of) {}
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() {
      const CancelToken never;
      const DecoderLimits::Scope scope(limits, never);
      if (is_open)
        ma_decoder_uninit(&decoder);
    }

    DecoderLimits& limits;
    ma_decoder decoder{};
    bool is_open = false;
  };

  DecoderLimits limits_;
  Input input_;
  Opened opened_{limits_};
  int channel_ = kAllChannels; // the one that is read
  bool is_mp3_ = false;
  int block_rate_ = 0; // of the last block
  std::unique_ptr<Resampler> resampler_;
  std::vector<float> frames_;
  std::vector<float> mono_;
  std::vector<float> side_; // half the difference of two channels
  bool cancels_ = false;
  float side_share_ = -1; // of the difference in what is heard, 0..1; negative before the first block
};

AudioFile::AudioFile(const std::string& path, const CancelToken& cancel, int channel) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    bad_audio("The audio file cannot be read");
  const auto bytes = std::filesystem::file_size(path, error);
  FilePtr file(std::fopen(path.c_str(), "rb"));
  if (!file)
    bad_audio("The audio file cannot be read");
  const auto format = sniff_file(file.get());
  if (std::fseek(file.get(), 0, SEEK_SET) != 0)
    bad_audio("The audio file cannot be read");
  decoder_ = std::make_unique<Decoder>(path, std::move(file), bytes, format, channel, cancel);
  info_ = {format, decoder_->rate, decoder_->channels, decoder_->header_duration(format, bytes)};
  while (!decode(1, cancel)) {
  }
  if (ready_.empty())
    bad_audio("The audio file holds no samples");
}

AudioFile::~AudioFile() = default;

bool AudioFile::decode(size_t samples, const CancelToken& cancel) {
  if (cut_off_)
    throw Failure(StatusCode::closed,
                  "An earlier call on this audio file was cut off, so the rest cannot be read");
  const auto end = std::chrono::steady_clock::now() + kMaxTurn;
  while (ready_.size() < samples && !at_end_) {
    cut_off_ = true;
    at_end_ = !decoder_->next(ready_, cancel);
    cut_off_ = false;
    if (std::chrono::steady_clock::now() >= end)
      break;
  }
  return ready_.size() >= samples || at_end_;
}

std::vector<float> AudioFile::take(size_t max_samples) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(max_samples, ready_.size()));
  std::vector<float> samples(ready_.begin(), ready_.begin() + count);
  ready_.erase(ready_.begin(), ready_.begin() + count);
  return samples;
}

std::vector<float> AudioFile::read(size_t max_samples, const CancelToken& cancel) {
  while (!decode(max_samples, cancel)) {
  }
  return take(max_samples);
}

} // namespace voxgate
