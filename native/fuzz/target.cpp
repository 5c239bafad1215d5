#include "target.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace voxgate::fuzz {
namespace {

enum Operation : uint8_t { kReplace, kReplaceNumber, kInsert, kRemove };

constexpr uint8_t kToTheEnd = 255;
constexpr uint8_t kAnywhere = 3 << 2;

std::string edit(Operation operation, uint32_t place) {
  std::string bytes(1, static_cast<char>(operation | kAnywhere));
  return bytes.append(reinterpret_cast<const char*>(&place), sizeof place);
}

} // namespace

void require(bool condition, const char* expression, const char* file, int line) {
  if (condition)
    return;
  std::fprintf(stderr, "%s:%d: %s does not hold\n", file, line, expression);
  std::abort();
}

const std::string& write_input(Bytes bytes) {
  static const int descriptor = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  REQUIRE(ftruncate(descriptor, static_cast<off_t>(bytes.size())) == 0);
  REQUIRE(pwrite(descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return path;
}

std::string edited(const std::string& whole, Bytes input) {
  constexpr std::array<size_t, 3> kNear{128, 1024, 16384};
  std::string file = whole;
  Reader reader(input);
  while (!reader.empty()) {
    const auto head = reader.number<uint8_t>();
    const size_t region = (head >> 2 & 3) < 3 ? kNear[head >> 2 & 3] : file.size();
    size_t place = reader.number<uint32_t>() % (std::min(region, file.size()) + 1);
    const auto operation = static_cast<Operation>(head & 3);
    const auto size = operation == kReplaceNumber ? uint8_t{4} : reader.number<uint8_t>();
    if (operation == kReplaceNumber)
      place = place / 4 * 4;
    const size_t left = file.size() - place;
    if (operation == kRemove) {
      file.erase(place, size == kToTheEnd ? left : size);
      continue;
    }
    const auto bytes = reader.take(size);
    const std::string text(bytes.begin(), bytes.end());
    if (operation == kInsert)
      file.insert(place, text);
    else
      file.replace(place, std::min(left, text.size()), text.substr(0, left));
  }
  return file;
}

std::string replace(uint32_t place, std::string_view bytes) {
  return edit(kReplace, place).append(1, static_cast<char>(bytes.size())).append(bytes);
}

std::string replace_number(uint32_t index, uint32_t value) {
  return edit(kReplaceNumber, 4 * index).append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string remove(uint32_t place, uint8_t size) {
  return edit(kRemove, place).append(1, static_cast<char>(size));
}

} // namespace voxgate::fuzz
