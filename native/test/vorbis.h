#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

// Ogg Vorbis files are made by hand here, because no encoder writes what a decoder has to survive.
// Page format: https://www.rfc-editor.org/rfc/rfc3533#section-6
// Headers and packets: https://xiph.org/vorbis/doc/Vorbis_I_spec.html#x1-590004

namespace voxgate::test {

// Appends a value's bytes as they lie in memory: little-endian, as all of these formats are.
template <typename T> void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Packs bits as Vorbis does, which fills a byte from its lowest bit.
class Bits {
 public:
  Bits& put(uint64_t value, int count);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  int free_ = 0; // free bits of the last byte
};

std::string ogg_page(uint32_t number, const std::string& packet);

// The stream is mono at 16 kHz in blocks of 64 and 8192 samples; the two headers before the set-up are sound.
std::string vorbis_file(const std::string& setup, const std::vector<std::string>& packets, int channels = 1);

// Makes the second header with these lengths in it, which its content need not keep.
std::string vorbis_with_comments(uint32_t vendor_bytes, const std::string& vendor, uint32_t comments,
                                 const std::string& rest);

// Starts a set-up header that announces this many codebooks.
Bits setup_of(int codebooks);
// Puts a codebook whose words all have the same length, which takes a dozen bytes for any number of entries.
void put_ordered_codebook(Bits& setup, uint32_t dimensions, uint32_t entries, int word_bits);
// Puts every bit of lookup type 1 except its values, which are zeros.
void put_lookup(Bits& setup, uint32_t values);
void put_no_lookup(Bits& setup);

// Puts the part behind the codebooks: one floor of no partitions, a residue of one partition from `begin` to
// `end` with the second codebook (or with none), and one mode of short blocks.
std::string finish_setup(Bits& setup, int residue_type, uint32_t begin, uint32_t end);

// Makes a set-up of one codebook that decodes, and a packet of silence for it: 32 samples with the one before
// it.
std::string silent_setup();
std::string silent_packet();

// Makes a whole file whose set-up mostly follows the rules, with extremes of each number, and packets of
// random bits.
std::string random_vorbis(std::mt19937& random);

} // namespace voxgate::test
