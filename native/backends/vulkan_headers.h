// What ggml's Vulkan backend takes from headers that older systems lack (Debian 12 has 1.3.239): the settings
// of the validation layer, VK_EXT_layer_settings of 1.3.272. It is included before the source of the backend
// (cmake/vulkan.cmake). The layout is that of the Vulkan specification, because the structures reach the
// loader, which skips those that it does not know.
#pragma once

#include <vulkan/vulkan_core.h>

#ifndef VK_EXT_layer_settings
#include <cstdint>
#include <vector>

namespace vk {

enum class LayerSettingTypeEXT : int32_t { eBool32 = 0 };

struct LayerSettingEXT {
  const char* layer;
  const char* name;
  LayerSettingTypeEXT type;
  uint32_t count;
  const void* values;
};

struct LayerSettingsCreateInfoEXT {
  explicit LayerSettingsCreateInfoEXT(const std::vector<LayerSettingEXT>& all)
      : count(static_cast<uint32_t>(all.size())), settings(all.data()) {}

  VkStructureType type = static_cast<VkStructureType>(1000496000);
  const void* next = nullptr;
  uint32_t count;
  const LayerSettingEXT* settings;
};

} // namespace vk
#endif
