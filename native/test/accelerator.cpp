#include "accelerator.h"

#include <ggml-backend-impl.h>

#include <utility>

namespace voxgate::test {
namespace {

ggml_backend_reg g_registry{};
ggml_backend_device g_device{};
std::function<void(ggml_backend_t, int)> g_made;
int g_backends = 0;

} // namespace

void register_accelerator(std::function<void(ggml_backend_t, int)> made) {
  g_made = std::move(made);
  if (g_device.reg != nullptr)
    return;
  g_device.iface.get_name = [](ggml_backend_dev_t) { return "ACCEL0"; };
  g_device.iface.get_description = [](ggml_backend_dev_t) { return "The CPU again"; };
  g_device.iface.get_type = [](ggml_backend_dev_t) { return GGML_BACKEND_DEVICE_TYPE_ACCEL; };
  g_device.iface.get_memory = [](ggml_backend_dev_t, size_t* free, size_t* total) {
    *free = *total = size_t{1} << 30;
  };
  g_device.iface.init_backend = [](ggml_backend_dev_t, const char*) {
    auto* backend = ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr);
    ++g_backends;
    if (g_made)
      g_made(backend, g_backends);
    return backend;
  };
  g_device.iface.get_buffer_type = [](ggml_backend_dev_t) { return ggml_backend_cpu_buffer_type(); };
  g_device.iface.supports_op = [](ggml_backend_dev_t, const ggml_tensor*) { return true; };
  g_device.iface.supports_buft = [](ggml_backend_dev_t, ggml_backend_buffer_type_t type) {
    return ggml_backend_buft_is_host(type);
  };
  g_device.reg = &g_registry;
  g_registry.api_version = GGML_BACKEND_API_VERSION;
  g_registry.iface.get_name = [](ggml_backend_reg_t) { return "ACCEL"; };
  g_registry.iface.get_device_count = [](ggml_backend_reg_t) { return size_t{1}; };
  g_registry.iface.get_device = [](ggml_backend_reg_t, size_t) { return &g_device; };
  ggml_backend_register(&g_registry);
}

int accelerator_backends() {
  return g_backends;
}

} // namespace voxgate::test
