#include "audio/decoder_limits.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

namespace voxgate {
namespace {

// The overhead of one block, in the allocator and in the map.
constexpr size_t kBlockBytes = 96;

thread_local DecoderLimits* t_limits = nullptr;

std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

} // namespace

DecoderLimits::Scope::Scope(DecoderLimits& limits, const CancelToken& cancel)
    : before_(std::exchange(t_limits, &limits)) {
  limits.cancel_ = &cancel;
  limits.until_ = processor_time() + kMaxTime;
}

DecoderLimits::Scope::~Scope() {
  t_limits->cancel_ = nullptr;
  t_limits = before_;
}

DecoderLimits* DecoderLimits::current() noexcept {
  return t_limits;
}

void DecoderLimits::Free::operator()(void* block) const noexcept {
  std::free(block);
}

void* DecoderLimits::allocate(size_t size) noexcept {
  const size_t left = kMaxBytes - bytes_;
  if (cancel_->cancelled() || blocks_.size() >= kMaxBlocks || left < kBlockBytes || size > left - kBlockBytes)
    return nullptr;
  try {
    std::unique_ptr<void, Free> memory(std::calloc(1, std::max<size_t>(size, 1)));
    void* address = memory.get();
    if (address == nullptr)
      return nullptr;
    blocks_.emplace(address, Block{std::move(memory), size});
    bytes_ += size + kBlockBytes;
    return address;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* DecoderLimits::reallocate(void* block, size_t size) noexcept {
  const auto found = blocks_.find(block);
  const size_t kept = found == blocks_.end() ? 0 : std::min(size, found->second.size);
  void* moved = allocate(size);
  if (moved != nullptr && kept > 0)
    std::memcpy(moved, block, kept);
  if (moved != nullptr)
    release(block);
  return moved;
}

void DecoderLimits::release(void* block) noexcept {
  const auto found = blocks_.find(block);
  if (found == blocks_.end())
    return;
  bytes_ -= found->second.size + kBlockBytes;
  blocks_.erase(found);
}

bool DecoderLimits::admit_codebook(uint64_t entries, uint64_t dimensions) noexcept {
  entries_ += entries;
  values_ += entries * dimensions;
  return entries_ <= kMaxEntries && values_ <= kMaxValues;
}

bool DecoderLimits::admit_input() const noexcept {
  return !cancel_->cancelled() && processor_time() < until_;
}

} // namespace voxgate

using voxgate::DecoderLimits;

void* voxgate_vorbis_allocate(size_t size) {
  auto* limits = DecoderLimits::current();
  return limits != nullptr ? limits->allocate(size) : nullptr;
}

void voxgate_vorbis_release(void* block) {
  if (auto* limits = DecoderLimits::current())
    limits->release(block);
}

int voxgate_vorbis_codebook(int entries, int dimensions) {
  auto* limits = DecoderLimits::current();
  return limits != nullptr &&
         limits->admit_codebook(static_cast<uint64_t>(entries), static_cast<uint64_t>(dimensions));
}

int voxgate_vorbis_page() {
  auto* limits = DecoderLimits::current();
  return limits != nullptr && limits->admit_input();
}
