#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What a fuzz target is, and what targets share. A target takes any bytes and ends the process when the code
// under test breaks its promise; sanitizers and the limits of libFuzzer find the rest.

namespace voxgate::fuzz {

using Bytes = std::span<const uint8_t>;

struct Target {
  std::string_view name;
  void (*run)(Bytes input);
  // Sound inputs that code makes, for the corpus. Files that other programs wrote come from make-corpus.mjs.
  std::vector<std::string> (*seeds)();
};

extern const Target kWav, kMp3, kFlac, kVorbis;                       // audio_targets.cpp
extern const Target kWhisper, kParakeet, kGguf, kSenseVoice, kSilero; // model_targets.cpp
extern const Target kText;                                            // text_target.cpp

// Ends the process unless `condition` holds.
void require(bool condition, const char* expression, const char* file, int line);

// Makes the file that targets read, and returns its path. There is one, in memory; each call replaces it.
const std::string& write_input(Bytes bytes);

// Takes numbers from the front of an input, and zeros when it is used up.
class Reader {
 public:
  explicit Reader(Bytes input) : rest_(input) {}

  template <typename T> T number() {
    T value{};
    const auto bytes = take(sizeof value);
    for (size_t i = 0; i < bytes.size(); ++i)
      reinterpret_cast<uint8_t*>(&value)[i] = bytes[i];
    return value;
  }
  Bytes take(size_t size) {
    const auto taken = rest_.first(size < rest_.size() ? size : rest_.size());
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  bool empty() const { return rest_.empty(); }

 private:
  Bytes rest_;
};

// A sound file with changes that the input describes, as most bytes of a model file are weights: a random
// change of a whole file hardly ever meets a number that matters. Each edit is an operation, a place and, for
// some, bytes; the lower two bits of the operation say what is done:
//   0 bytes are replaced   1 a number of four bytes is replaced, at a multiple of four
//   2 bytes are put in     3 bytes are removed, up to the end of the file for a length of 255
// and the next two bits say how far from the start the place may be.
std::string edited(const std::string& whole, Bytes input);

// The edits above as bytes, for seeds.
std::string replace(uint32_t place, std::string_view bytes);
std::string replace_number(uint32_t index, uint32_t value);
std::string remove(uint32_t place, uint8_t size);

} // namespace voxgate::fuzz

#define REQUIRE(condition) voxgate::fuzz::require((condition), #condition, __FILE__, __LINE__)
