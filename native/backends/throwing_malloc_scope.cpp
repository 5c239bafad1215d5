#include "backends/throwing_malloc.h"

extern "C" int voxgate_throwing_malloc(int scopes); // throwing_malloc.cpp

namespace voxgate {

ThrowingMalloc::ThrowingMalloc() : before_(voxgate_throwing_malloc(1)) {}

ThrowingMalloc::~ThrowingMalloc() {
  voxgate_throwing_malloc(-1);
}

bool ThrowingMalloc::has_thrown() const {
  return voxgate_throwing_malloc(0) > before_;
}

} // namespace voxgate
