#pragma once

// What the patched copies of whisper.cpp and parakeet.cpp (family.cmake) use where an exception would leave
// behind what was made before it.
namespace voxgate {

// Frees a value that is made piece by piece, unless `not_needed` is called when it is complete.
template <typename Value> class Undo {
 public:
  Undo(const Value& value, void (*free)(Value)) : value_(value), free_(free) {}
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    if (free_ != nullptr)
      free_(value_);
  }

  void not_needed() { free_ = nullptr; }

 private:
  const Value& value_;
  void (*free_)(Value);
};

} // namespace voxgate
