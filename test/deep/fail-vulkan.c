/* Preloaded into a process, it stands between ggml's Vulkan library and the driver. While the file that
 * VOXGATE_VULKAN_FAILS names holds "FUNCTION RESULT", that function does nothing and returns that VkResult. With the
 * word "once" behind them it fails once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan_core.h>

static VkResult told(const char *function) {
  const char *path = getenv("VOXGATE_VULKAN_FAILS");
  FILE *file = path == NULL ? NULL : fopen(path, "r");
  char name[64] = "", once[8] = "";
  int result = VK_SUCCESS;
  if (file != NULL) {
    if (fscanf(file, "%63s %d %7s", name, &result, once) < 2 || strcmp(name, function) != 0)
      result = VK_SUCCESS;
    fclose(file);
    if (result != VK_SUCCESS && strcmp(once, "once") == 0)
      remove(path);
  }
  return (VkResult)result;
}

static PFN_vkAllocateMemory allocate;
static VkResult allocate_or_fail(VkDevice device, const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *callbacks,
                                 VkDeviceMemory *memory) {
  const VkResult result = told("vkAllocateMemory");
  return result != VK_SUCCESS ? result : allocate(device, info, callbacks, memory);
}

static PFN_vkQueueSubmit submit;
static VkResult submit_or_fail(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence) {
  const VkResult result = told("vkQueueSubmit");
  return result != VK_SUCCESS ? result : submit(queue, count, infos, fence);
}

static PFN_vkGetFenceStatus fence_status;
static VkResult fence_status_or_fail(VkDevice device, VkFence fence) {
  const VkResult result = told("vkGetFenceStatus");
  return result != VK_SUCCESS ? result : fence_status(device, fence);
}

PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name) {
  static PFN_vkGetInstanceProcAddr find;
  if (find == NULL)
    find = (PFN_vkGetInstanceProcAddr)dlsym(dlopen("libvulkan.so.1", RTLD_NOW), "vkGetInstanceProcAddr");
  const PFN_vkVoidFunction found = find(instance, name);
  if (found == NULL)
    return NULL;
  if (strcmp(name, "vkAllocateMemory") == 0) {
    allocate = (PFN_vkAllocateMemory)found;
    return (PFN_vkVoidFunction)allocate_or_fail;
  }
  if (strcmp(name, "vkQueueSubmit") == 0) {
    submit = (PFN_vkQueueSubmit)found;
    return (PFN_vkVoidFunction)submit_or_fail;
  }
  if (strcmp(name, "vkGetFenceStatus") == 0) {
    fence_status = (PFN_vkGetFenceStatus)found;
    return (PFN_vkVoidFunction)fence_status_or_fail;
  }
  return found;
}
