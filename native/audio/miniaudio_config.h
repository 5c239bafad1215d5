#pragma once

// miniaudio's structs depend on these, so every file that includes it must do it through this one. Only
// decoding is wanted: no devices, no threads of its own.
#define MA_NO_DEVICE_IO
#define MA_NO_THREADING
#define MA_NO_ENCODING
#define MA_NO_GENERATION
#define MA_NO_RESOURCE_MANAGER
#define MA_NO_NODE_GRAPH
#define MA_NO_ENGINE

#include <miniaudio.h>
