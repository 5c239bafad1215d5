#include "backends/registry.h"

#include "backends/gpu_guard.h"

#include <algorithm>

namespace voxgate {
namespace {

constinit const FamilyRegistration* g_first = nullptr;

const FamilyRegistration* find(std::string_view name) {
  const auto* family = g_first;
  while (family != nullptr && family->name != name)
    family = family->next;
  return family;
}

} // namespace

FamilyRegistration::FamilyRegistration(std::string_view family_name, BackendFactory load_family,
                                       SetLog set_family_log)
    : name(family_name), load(load_family), set_log(set_family_log), next(g_first) {
  g_first = this;
}

const FamilyRegistration* FamilyRegistration::first() {
  return g_first;
}

bool has_family(std::string_view name) {
  return find(name) != nullptr;
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names;
  for (const auto* family = g_first; family != nullptr; family = family->next)
    names.push_back(family->name);
  std::ranges::sort(names);
  return names;
}

std::unique_ptr<Backend> load_model(const LoadOptions& options, const CancelToken& cancel) {
  if (const auto* family = find(options.family))
    return load_guarded(family->load, options, cancel);
  std::string message = "There is no model family \"" + options.family + "\" in this build; it has";
  for (const auto name : family_names())
    message.append(message.ends_with("has") ? " " : ", ").append(name);
  throw Failure(StatusCode::invalid_argument, message);
}

} // namespace voxgate
