#include "audio/vorbis_memory.h"

#include <new>
#include <utility>

namespace voxgate {
namespace {

thread_local VorbisMemory* t_memory = nullptr;

} // namespace

VorbisMemory::Scope::Scope(VorbisMemory& memory) : before_(std::exchange(t_memory, &memory)) {}

VorbisMemory::Scope::~Scope() {
  t_memory = before_;
}

void* VorbisMemory::allocate(size_t size) noexcept {
  try {
    auto block = std::make_unique<std::byte[]>(size);
    void* address = block.get();
    blocks_.emplace(address, std::move(block));
    return address;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void VorbisMemory::release(void* block) noexcept {
  blocks_.erase(block);
}

} // namespace voxgate

void* voxgate_vorbis_allocate(size_t size) {
  return voxgate::t_memory != nullptr ? voxgate::t_memory->allocate(size) : nullptr;
}

void voxgate_vorbis_release(void* block) {
  if (voxgate::t_memory != nullptr)
    voxgate::t_memory->release(block);
}
