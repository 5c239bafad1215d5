#pragma once

#include "backend.h"

#include <ggml.h>

// How a family of models makes itself known. Each family is a folder beside this file, which CMake compiles
// whole (native/CMakeLists.txt); in one of its sources stands
//
//   const FamilyRegistration registration{"name", load_name};
//
// and no list anywhere has to be changed. Two things make this safe:
//
//  - The linker cannot leave a registration out although nothing refers to it, because the sources are an
//    object library: unlike the members of a static library, all objects of one are linked.
//  - The order in which static objects are made does not matter. A registration only links itself into a list
//    whose head is a constant-initialized pointer, which is valid before any constructor runs, and the list
//    is read only after the library was loaded.

namespace voxgate {

using BackendFactory = std::unique_ptr<Backend> (*)(const LoadOptions& options, const CancelToken& cancel);

class FamilyRegistration {
 public:
  using SetLog = void (*)(ggml_log_callback callback, void* user_data);

  // `name` is a literal. `set_log` is for a family whose library has a log of its own beside ggml's; it is
  // called once, before any model is loaded.
  FamilyRegistration(std::string_view name, BackendFactory load, SetLog set_log = nullptr);
  FamilyRegistration(const FamilyRegistration&) = delete;
  FamilyRegistration& operator=(const FamilyRegistration&) = delete;

  // The registration made last, from which `next` leads to all others; null where there is none.
  static const FamilyRegistration* first();

  const std::string_view name;
  const BackendFactory load;
  const SetLog set_log;
  const FamilyRegistration* const next;
};

} // namespace voxgate
