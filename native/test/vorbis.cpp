#include "vorbis.h"

#include <algorithm>
#include <bit>
#include <set>

namespace voxgate::test {
namespace {

constexpr uint32_t kCodebookMark = 0x564342;

// Computes the specification's ilog, the number of bits that the number itself takes.
int bits_of(uint32_t number) {
  return static_cast<int>(std::bit_width(number));
}

std::string identification(int channels) {
  std::string packet = "\x01vorbis";
  put(packet, uint32_t{0});
  packet += static_cast<char>(channels);
  put(packet, uint32_t{16000});
  packet += std::string(12, '\0'); // bit rates
  packet += "\xD6\x01";            // blocks of 2^6 and 2^13 samples, framing
  return packet;
}

std::string comments(uint32_t vendor_bytes, const std::string& vendor, uint32_t count,
                     const std::string& rest) {
  std::string packet = "\x03vorbis";
  put(packet, vendor_bytes);
  packet += vendor;
  put(packet, count);
  return packet + rest;
}

// Gives random numbers by their purpose.
class Dice {
 public:
  explicit Dice(std::mt19937& random) : random_(random) {}
  uint32_t below(uint32_t end) { return random_() % end; }
  bool rarely() { return below(16) == 0; }
  uint32_t one_of(std::initializer_list<uint32_t> values) {
    return *(values.begin() + below(static_cast<uint32_t>(values.size())));
  }

 private:
  std::mt19937& random_;
};

void put_random_codebook(Bits& setup, Dice& dice) {
  const uint32_t dimensions = dice.one_of({0, 1, 1, 2, 3, 4, 8, 200});
  const uint32_t entries = dimensions == 0 ? 0 : dice.one_of({0, 1, 2, 4, 5, 9, 16, 81, 300, 2000});
  const int shortest = std::max(1, bits_of(entries));
  const auto kind = dice.below(3); // ordered, every entry used, some entries used
  if (kind == 0) {
    put_ordered_codebook(setup, dimensions, entries, shortest + static_cast<int>(dice.below(8)));
  } else {
    setup.put(kCodebookMark, 24).put(dimensions, 16).put(entries, 24).put(0, 1).put(kind - 1, 1);
    const bool none = dice.below(4) == 0;
    for (uint32_t i = 0; i < entries; ++i) {
      const bool used = kind == 1 || (!none && dice.below(5) == 0);
      if (kind == 2)
        setup.put(used ? 1 : 0, 1);
      if (used)
        setup.put(static_cast<uint64_t>(shortest) - 1 + dice.below(6), 5);
    }
  }
  // The values of the codebook must fit on one page.
  const auto type = entries == 0 || entries * dimensions > 4000 ? 0 : dice.below(3);
  setup.put(type, 4);
  if (type == 0)
    return;
  const int value_bits = 1 + static_cast<int>(dice.below(8));
  setup.put(0x60A00000, 32).put(0x60200001, 32).put(static_cast<uint64_t>(value_bits) - 1, 4);
  setup.put(dice.below(2), 1);
  uint64_t values = uint64_t{entries} * dimensions;
  if (type == 1) {
    // This ends at the largest number whose power of `dimensions` is no more than the entries.
    for (values = 1;; ++values) {
      uint64_t power = 1;
      for (uint32_t i = 0; i < dimensions && power <= entries; ++i)
        power *= values + 1;
      if (power > entries)
        break;
    }
  }
  for (uint64_t i = 0; i < values; ++i)
    setup.put(dice.below(256), value_bits);
}

void put_random_floor(Bits& setup, Dice& dice, uint32_t codebooks) {
  setup.put(1, 16); // type 0 is not read at all
  const auto partitions = dice.below(8);
  setup.put(partitions, 5);
  std::vector<uint32_t> classes;
  for (uint32_t i = 0; i < partitions; ++i) {
    classes.push_back(dice.below(4));
    setup.put(classes.back(), 4);
  }
  std::vector<uint32_t> sizes;
  const uint32_t count = classes.empty() ? 0 : *std::ranges::max_element(classes) + 1;
  for (uint32_t i = 0; i < count; ++i) {
    sizes.push_back(1 + dice.below(8));
    const auto subclasses = dice.below(4);
    setup.put(sizes.back() - 1, 3).put(subclasses, 2);
    if (subclasses > 0)
      setup.put(dice.below(codebooks), 8);
    for (uint32_t k = 0; k < 1U << subclasses; ++k)
      setup.put(dice.below(codebooks + 1), 8);
  }
  const auto range_bits = dice.one_of({6, 9, 12, 15});
  setup.put(dice.below(4), 2).put(range_bits, 4);
  std::set<uint32_t> seen{0};
  for (const auto c : classes) {
    for (uint32_t k = 0; k < sizes[c]; ++k) {
      uint32_t x = dice.below(1U << range_bits);
      while (!seen.insert(x).second)
        x = (x + 1) % (1U << range_bits);
      setup.put(x, static_cast<int>(range_bits));
    }
  }
}

void put_random_residue(Bits& setup, Dice& dice, uint32_t codebooks) {
  const auto begin = dice.one_of({0, 0, 1, 31, 4096, 0xFFFFFF});
  setup.put(dice.below(3), 16).put(begin, 24);
  setup.put(std::max(begin, dice.one_of({0, 32, 64, 4096, 8192, 0xFFFFFF})), 24);
  setup.put(dice.one_of({0, 1, 2, 7, 15, 31, 8191}), 24);
  const auto classifications = 1 + dice.below(6);
  setup.put(classifications - 1, 6).put(dice.below(codebooks), 8);
  std::vector<uint32_t> cascades;
  for (uint32_t i = 0; i < classifications; ++i) {
    cascades.push_back(dice.below(256));
    setup.put(cascades.back() & 7, 3).put(1, 1).put(cascades.back() >> 3, 5);
  }
  for (const auto cascade : cascades)
    for (int i = 0; i < std::popcount(cascade); ++i)
      setup.put(dice.below(codebooks), 8);
}

void put_random_mapping(Bits& setup, Dice& dice, uint32_t channels, uint32_t floors, uint32_t residues) {
  setup.put(0, 16);
  const auto submaps = dice.one_of({1, 1, 2, 15, 16});
  setup.put(submaps > 1 ? 1 : 0, 1);
  if (submaps > 1)
    setup.put(submaps - 1, 4);
  const auto coupled = channels > 1 ? dice.below(channels) : 0;
  setup.put(coupled > 0 ? 1 : 0, 1);
  if (coupled > 0)
    setup.put(coupled - 1, 8);
  for (uint32_t i = 0; i < coupled; ++i) {
    const auto magnitude = dice.below(channels);
    setup.put(magnitude, bits_of(channels - 1)).put((magnitude + 1) % channels, bits_of(channels - 1));
  }
  setup.put(0, 2);
  if (submaps > 1)
    for (uint32_t i = 0; i < channels; ++i)
      setup.put(dice.below(submaps), 4);
  for (uint32_t i = 0; i < submaps; ++i)
    setup.put(0, 8).put(dice.below(floors), 8).put(dice.below(residues), 8);
}

} // namespace

Bits& Bits::put(uint64_t value, int count) {
  for (int i = 0; i < count; ++i) {
    if (free_ == 0) {
      bytes_ += '\0';
      free_ = 8;
    }
    bytes_.back() = static_cast<char>(bytes_.back() | ((value >> i & 1) << (8 - free_)));
    --free_;
  }
  return *this;
}

std::string ogg_page(uint32_t number, const std::string& packet) {
  std::string bytes = "OggS";
  bytes += '\0';
  bytes += number == 0 ? '\x02' : '\0';
  put(bytes, ~uint64_t{0}); // position: not told
  put(bytes, uint32_t{1});
  put(bytes, number);
  put(bytes, uint32_t{0}); // checksum, not looked at
  std::string lacing(packet.size() / 255, '\xFF');
  lacing += static_cast<char>(packet.size() % 255);
  bytes += static_cast<char>(lacing.size());
  return bytes + lacing + packet;
}

std::string vorbis_file(const std::string& setup, const std::vector<std::string>& packets, int channels) {
  std::string file = ogg_page(0, identification(channels)) + ogg_page(1, comments(0, "", 0, "\x01"));
  file += ogg_page(2, setup);
  uint32_t number = 3;
  for (const auto& packet : packets)
    file += ogg_page(number++, packet);
  return file;
}

std::string vorbis_with_comments(uint32_t vendor_bytes, const std::string& vendor, uint32_t count,
                                 const std::string& rest) {
  return ogg_page(0, identification(1)) + ogg_page(1, comments(vendor_bytes, vendor, count, rest)) +
         ogg_page(2, std::string(200, '\x05'));
}

Bits setup_of(int codebooks) {
  Bits setup;
  for (const char c : std::string("\x05vorbis"))
    setup.put(static_cast<uint8_t>(c), 8);
  setup.put(static_cast<uint64_t>(codebooks) - 1, 8);
  return setup;
}

void put_ordered_codebook(Bits& setup, uint32_t dimensions, uint32_t entries, int word_bits) {
  setup.put(kCodebookMark, 24).put(dimensions, 16).put(entries, 24).put(1, 1);
  setup.put(static_cast<uint64_t>(word_bits) - 1, 5).put(entries, bits_of(entries));
}

void put_lookup(Bits& setup, uint32_t values) {
  setup.put(1, 4).put(0, 32).put(0, 32).put(0, 4).put(0, 1);
  for (uint32_t i = 0; i < values; ++i)
    setup.put(0, 1);
}

void put_no_lookup(Bits& setup) {
  setup.put(0, 4);
}

std::string silent_setup() {
  Bits setup = setup_of(1);
  put_ordered_codebook(setup, 1, 2, 1);
  put_no_lookup(setup);
  return finish_setup(setup, 0, 0, 0);
}

std::string silent_packet() {
  return {'\0'}; // audio, the only mode, no floor
}

std::string finish_setup(Bits& setup, int residue_type, uint32_t begin, uint32_t end) {
  setup.put(0, 6).put(0, 16);                     // time domain: a placeholder of the format
  setup.put(0, 6).put(1, 16).put(0, 5).put(0, 2); // one floor without partitions
  setup.put(6, 4);                                // its range: 64
  setup.put(0, 6).put(static_cast<uint32_t>(residue_type), 16);
  setup.put(begin, 24).put(end, 24).put(end > begin ? end - begin - 1 : 0, 24);
  setup.put(0, 6).put(0, 8);                   // one classification, told by the first codebook
  setup.put(end > begin ? 1 : 0, 3).put(0, 1); // one pass
  if (end > begin)
    setup.put(1, 8);                              // with the second codebook
  setup.put(0, 6).put(0, 16).put(0, 1).put(0, 1); // one mapping of one submap, not coupled
  setup.put(0, 2).put(0, 24);                     // reserved; its floor and residue
  setup.put(0, 6).put(0, 1).put(0, 32).put(0, 8); // one mode of short blocks
  return setup.put(1, 1).bytes();
}

std::string random_vorbis(std::mt19937& random) {
  Dice dice(random);
  const uint32_t channels = dice.one_of({1, 1, 2, 2, 3, 6, 16});
  const uint32_t codebooks = 1 + dice.below(6);
  Bits setup = setup_of(static_cast<int>(codebooks));
  for (uint32_t i = 0; i < codebooks; ++i)
    put_random_codebook(setup, dice);
  setup.put(0, 6).put(0, 16);
  const auto floors = 1 + dice.below(3);
  setup.put(floors - 1, 6);
  for (uint32_t i = 0; i < floors; ++i)
    put_random_floor(setup, dice, codebooks);
  const auto residues = 1 + dice.below(3);
  setup.put(residues - 1, 6);
  for (uint32_t i = 0; i < residues; ++i)
    put_random_residue(setup, dice, codebooks);
  const auto mappings = 1 + dice.below(2);
  setup.put(mappings - 1, 6);
  for (uint32_t i = 0; i < mappings; ++i)
    put_random_mapping(setup, dice, channels, floors, residues);
  const auto modes = 1 + dice.below(3);
  setup.put(modes - 1, 6);
  for (uint32_t i = 0; i < modes; ++i)
    setup.put(dice.below(2), 1).put(0, 32).put(dice.below(mappings), 8);
  setup.put(1, 1);

  std::vector<std::string> packets;
  for (uint32_t i = 0; i < 12; ++i) {
    std::string packet(1 + dice.below(dice.rarely() ? 4000 : 200), '\0');
    for (auto& byte : packet)
      byte = static_cast<char>(dice.below(256));
    packet.front() = static_cast<char>(packet.front() & ~1); // audio
    packets.push_back(packet);
  }
  std::string file = vorbis_file(setup.bytes(), packets, static_cast<int>(channels));
  if (dice.rarely())
    file[dice.below(static_cast<uint32_t>(file.size()))] = static_cast<char>(dice.below(256));
  return file;
}

} // namespace voxgate::test
