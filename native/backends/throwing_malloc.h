#pragma once

namespace voxgate {

// ggml aborts, or uses a null pointer, where it gets no memory. While one of these lives, an allocation in C
// that fails on this thread throws std::bad_alloc instead, in ggml's libraries and in the addon. It works on
// Linux, where the linker leads their calls of malloc to ours (cmake/throwing-malloc.cmake).
class ThrowingMalloc {
 public:
  ThrowingMalloc();
  ThrowingMalloc(const ThrowingMalloc&) = delete;
  ThrowingMalloc& operator=(const ThrowingMalloc&) = delete;
  ~ThrowingMalloc();

  // True if an allocation in C has failed since this one was made. Libraries turn the exception into an error
  // that does not say why.
  bool has_thrown() const;

 private:
  int before_;
};

} // namespace voxgate
