#include "audio/audio_file.h"

#include "audio/decoder_input.h"
#include "audio/decoder_limits.h"
#include "audio/downmix.h"
#include "audio/frames.h"
#include "audio/miniaudio_config.h"
#include "audio/resampler.h"
#include "backend.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>

namespace voxgate {
namespace {

constexpr int kMinRate = 2000;
constexpr int kMaxRate = 384000;
constexpr size_t kBlockFrames = 4096;
// A longer loss is an error in the file. ffmpeg fills gaps up to the same length
// (`src/audio/ffmpeg-arguments.ts`).
constexpr double kMaxLossSec = 600;
// Encoders round to whole frames, so a header may name a little more than there is. `src/audio/decoder.ts`
// has the same number.
constexpr double kEndSlackSec = 1;
// Losses that are closer to each other than this are one, as are those after the most.
constexpr double kApartSec = 1;
constexpr size_t kMaxLosses = 256;
// Decoders share a few threads, so no file keeps one for longer than this while others wait.
constexpr std::chrono::milliseconds kMaxTurn{50};

[[noreturn]] void bad_audio(const std::string& reason) {
  throw Failure(StatusCode::bad_audio, reason);
}

// In the order of AudioFormat.
constexpr std::array kEncodings{ma_encoding_format_wav, ma_encoding_format_mp3, ma_encoding_format_flac,
                                ma_encoding_format_vorbis};

std::vector<float> take_from(std::vector<float>& ready, size_t max_samples) {
  const auto count = static_cast<std::ptrdiff_t>(std::min(max_samples, ready.size()));
  std::vector<float> samples(ready.begin(), ready.begin() + count);
  ready.erase(ready.begin(), ready.begin() + count);
  return samples;
}

ma_allocation_callbacks allocation(DecoderLimits& limits) {
  return {&limits, [](size_t size, void* held) { return static_cast<DecoderLimits*>(held)->allocate(size); },
          [](void* block, size_t size, void* held) {
            return static_cast<DecoderLimits*>(held)->reallocate(block, size);
          },
          [](void* block, void* held) { static_cast<DecoderLimits*>(held)->release(block); }};
}

} // namespace

class AudioFile::Decoder {
 public:
  Decoder(std::string path, FilePtr file, uint64_t bytes, AudioFormat format, int channel,
          const CancelToken& cancel)
      : path_(std::move(path)), format_(format), input_(std::move(file), bytes, format == AudioFormat::flac),
        downmix_(channel) {
    const DecoderLimits::Scope scope(limits_, cancel);
    open();
    cancel.check();
    require_readable();
    block_.rate = rate;
    has_sides_ = channels == 2 && channel < 0;
    resampler_ = std::make_unique<Resampler>(rate);
    if (has_sides_)
      side_resampler_ = std::make_unique<Resampler>(rate);
  }

  // The duration in seconds if the header holds it, else -1. For MP3, miniaudio would decode the whole file.
  double header_duration(uint64_t file_bytes) {
    if (format_ != AudioFormat::wav && format_ != AudioFormat::flac)
      return -1;
    ma_uint64 frames = 0;
    if (ma_decoder_get_length_in_pcm_frames(&opened_.decoder, &frames) != MA_SUCCESS || frames == 0)
      return -1;
    // Programs that write to a pipe leave a placeholder of hours. No WAV coding has less than four bits a
    // sample.
    if (format_ == AudioFormat::wav && frames * static_cast<uint64_t>(channels) > 2 * file_bytes)
      return -1;
    return static_cast<double>(frames) / rate;
  }

  // Appends one block of samples, and of `sides` where the file has them; false if there are no more.
  bool next(std::vector<float>& output, std::vector<float>& sides, const CancelToken& cancel) {
    const DecoderLimits::Scope scope(limits_, cancel);
    const size_t before = output.size();
    const bool more = silent_ > 0 ? append_silence(output, sides) : append_block(output, sides, cancel);
    // The filter overshoots 1 at steps of full scale.
    for (size_t i = before; i < output.size(); ++i)
      output[i] = sane(output[i]);
    return more;
  }

  int channels = 0;
  int rate = 0;
  std::vector<Loss> losses;

 private:
  // Opens the file, or of FLAC files that were joined the one at which the input stands.
  void open() {
    opened_.close();
    last_ = {};
    mean_ = {};
    // The decoder keeps the channels and the rate of the file, because the samples must be made sane before
    // any filter gets them.
    auto config = ma_decoder_config_init(ma_format_f32, 0, 0);
    config.encodingFormat = kEncodings.at(static_cast<size_t>(format_));
    config.allocationCallbacks = allocation(limits_);
    // stb_vorbis opens the file itself, because otherwise it reads the whole header again and again.
    const auto result = format_ == AudioFormat::vorbis
                            ? ma_decoder_init_file(path_.c_str(), &config, &opened_.decoder)
                            : ma_decoder_init_vfs(input_.vfs(), path_.c_str(), &config, &opened_.decoder);
    opened_.is_open = result == MA_SUCCESS;
    if (!opened_.is_open)
      return;
    ma_format sample_format = ma_format_unknown;
    ma_uint32 file_channels = 0;
    ma_uint32 file_rate = 0;
    ma_decoder_get_data_format(&opened_.decoder, &sample_format, &file_channels, &file_rate, nullptr, 0);
    channels = sample_format == ma_format_f32 ? static_cast<int>(file_channels) : 0;
    rate = static_cast<int>(file_rate);
    frames_.resize(kBlockFrames * std::max<size_t>(file_channels, kMp3Channels));
  }

  bool has_rate() const { return rate >= kMinRate && rate <= kMaxRate; }
  bool has_channels() const { return channels >= 1 && channels <= kMaxChannels; }
  bool is_readable() const { return opened_.is_open && has_channels() && has_rate(); }

  void require_readable() const {
    if (!opened_.is_open)
      bad_audio(std::string("The file is broken or not ") +
                kAudioFormatNames.at(static_cast<size_t>(format_)) + " audio");
    if (!has_channels())
      bad_audio("The audio has " + std::to_string(channels) + " channels; 1 to 32 can be read");
    if (!has_rate())
      bad_audio("The audio has a sample rate of " + std::to_string(rate) + " Hz; 2000 to 384000 can be read");
  }

  bool append_block(std::vector<float>& output, std::vector<float>& sides, const CancelToken& cancel) {
    const bool is_waiting = block_.frames > 0 && block_.lost > 0; // for the silence before it to end
    const int last_rate = block_.rate;
    if (!is_waiting)
      block_ = is_readable() ? read_block() : SampleBlock{};
    cancel.check(); // an aborted read must not pass for the end of the file
    if (last_rate != 0 && block_.rate != last_rate) {
      resampler_->finish(output);
      if (has_sides_)
        side_resampler_->finish(sides);
    }
    if (block_.frames == 0)
      return open_next();
    if (block_.rate != last_rate) {
      resampler_->begin(block_.rate);
      if (has_sides_)
        side_resampler_->begin(block_.rate);
    }
    if (block_.lost > 0 && !is_waiting) {
      silent_ = note_lost(block_.lost);
      return true;
    }
    block_.lost = 0;
    downmix_(block_, frames_);
    clock_ += static_cast<double>(block_.frames) / block_.rate;
    resample(output, sides);
    return true;
  }

  void resample(std::vector<float>& output, std::vector<float>& sides) {
    resampler_->process(downmix_.mono(), output);
    if (has_sides_)
      side_resampler_->process(downmix_.sides(), sides);
  }

  // Goes on to the next of the joined files; false after the last one.
  bool open_next() {
    note_missing_end();
    if (!input_.next())
      return false;
    open();
    return true;
  }

  SampleBlock read_block() {
    if (format_ == AudioFormat::mp3)
      return read_mp3(opened_.decoder, frames_, mean_);
    if (format_ == AudioFormat::flac)
      return read_flac(opened_.decoder, frames_, last_);
    ma_uint64 read = 0;
    ma_decoder_read_pcm_frames(&opened_.decoder, frames_.data(), kBlockFrames, &read);
    if (read == 0)
      return {};
    return {static_cast<size_t>(read), channels, rate};
  }

  // A block of the silence that stands for what was lost.
  bool append_silence(std::vector<float>& output, std::vector<float>& sides) {
    const auto frames = static_cast<size_t>(std::min<uint64_t>(silent_, kBlockFrames));
    downmix_.silence(frames);
    silent_ -= frames;
    clock_ += static_cast<double>(frames) / block_.rate;
    resample(output, sides);
    return true;
  }

  // Returns the samples of silence that stand for what was lost.
  uint64_t note_lost(uint64_t frames) {
    const double sec = std::min(static_cast<double>(frames) / block_.rate, kMaxLossSec);
    note_loss(clock_, clock_ + sec);
    lost_ += frames;
    return static_cast<uint64_t>(sec * block_.rate);
  }

  // What the header names, beyond what could be read. Of WAV the gateway sees that itself, as of all formats
  // with their samples in one chunk (`src/audio/sample-chunk.ts`).
  void note_missing_end() {
    const double sec = is_readable() ? missing_sec() : 0;
    if (sec > kEndSlackSec || !is_readable())
      note_loss(clock_, clock_ + sec);
    lost_ = 0;
    begun_ = clock_;
  }

  double missing_sec() {
    auto& decoder = opened_.decoder;
    const double heard = clock_ - begun_;
    if (format_ == AudioFormat::mp3)
      return (static_cast<double>(unread_frames_mp3(decoder)) - static_cast<double>(lost_)) / rate;
    if (format_ == AudioFormat::flac)
      return static_cast<double>(named_frames_flac(decoder)) / rate - heard;
    return 0;
  }

  void note_loss(double start, double end) {
    const bool is_next = !losses.empty() && start - losses.back().end_sec < kApartSec;
    if (is_next || losses.size() >= kMaxLosses)
      losses.back().end_sec = end;
    else
      losses.push_back({start, end});
  }

  // A member of its own, so that the decoder is closed where a constructor throws, too.
  struct Opened {
    explicit Opened(DecoderLimits& of) : limits(of) {}
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() {
      const CancelToken never;
      const DecoderLimits::Scope scope(limits, never);
      close();
    }

    // Needs a Scope.
    void close() {
      if (is_open)
        ma_decoder_uninit(&decoder);
      is_open = false;
      decoder = {};
    }

    DecoderLimits& limits;
    ma_decoder decoder{};
    bool is_open = false;
  };

  std::string path_;
  AudioFormat format_;
  DecoderLimits limits_;
  DecoderInput input_;
  Opened opened_{limits_};
  Downmix downmix_;
  bool has_sides_ = false; // half the difference of two channels, beside their average
  FlacFrame last_;
  Mp3Mean mean_;
  SampleBlock block_;   // the last one, or one that comes when `silent_` is over
  uint64_t silent_ = 0; // samples of silence that come first
  uint64_t lost_ = 0;   // samples of this file that were lost
  double clock_ = 0;    // the seconds so far
  double begun_ = 0;    // those at which this one of the joined files began
  std::unique_ptr<Resampler> resampler_;
  std::unique_ptr<Resampler> side_resampler_; // null without sides
  std::vector<float> frames_;
};

AudioFile::AudioFile(const std::string& path, AudioFormat format, const CancelToken& cancel, int channel) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    bad_audio("The audio file cannot be read");
  const auto bytes = std::filesystem::file_size(path, error);
  FilePtr file(std::fopen(path.c_str(), "rb"));
  if (!file)
    bad_audio("The audio file cannot be read");
  decoder_ = std::make_unique<Decoder>(path, std::move(file), bytes, format, channel, cancel);
  info_ = {decoder_->rate, decoder_->channels, decoder_->header_duration(bytes)};
  while (!decode(1, cancel)) {
  }
  if (ready_.empty())
    bad_audio("The audio file holds no samples");
}

AudioFile::~AudioFile() = default;

const std::vector<AudioFile::Loss>& AudioFile::losses() const {
  return decoder_->losses;
}

bool AudioFile::decode(size_t samples, const CancelToken& cancel) {
  if (cut_off_)
    throw Failure(StatusCode::closed,
                  "An earlier call on this audio file was cut off, so the rest cannot be read");
  const auto end = std::chrono::steady_clock::now() + kMaxTurn;
  while (ready_.size() < samples && !at_end_) {
    cut_off_ = true;
    at_end_ = !decoder_->next(ready_, ready_sides_, cancel);
    cut_off_ = false;
    if (std::chrono::steady_clock::now() >= end)
      break;
  }
  return ready_.size() >= samples || at_end_;
}

std::vector<float> AudioFile::take(size_t max_samples) {
  return take_from(ready_, max_samples);
}

std::vector<float> AudioFile::take_sides(size_t max_samples) {
  return take_from(ready_sides_, max_samples);
}

std::vector<float> AudioFile::read(size_t max_samples, const CancelToken& cancel) {
  while (!decode(max_samples, cancel)) {
  }
  take_sides(max_samples);
  return take(max_samples);
}

} // namespace voxgate
