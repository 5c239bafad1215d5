/**
 * Compiles ggml's Vulkan backend and puts it beside the addon, which loads it at run time where there is a GPU of AMD,
 * Intel or NVIDIA with a Vulkan driver.
 *
 *   node scripts/build-vulkan.mjs [--floats] [--whisper-source=FOLDER] [--jobs=N]
 *
 * Its shaders take some minutes once. They stay in build-vulkan/, as the library does. --floats compiles the library of
 * test/deep/vulkan.test.ts in build-vulkan-floats/: it is not optimized, cannot compute with quantized weights, and is
 * not put beside the addon.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { buildGpuLibrary } from './gpu-library.mjs';
import { requireTools, VULKAN_TOOLS } from './tools.mjs';

const { values: options } = parseArgs({
  options: {
    floats: { type: 'boolean', default: false },
    'whisper-source': { type: 'string', default: '' },
    jobs: { type: 'string', default: String(availableParallelism()) },
  },
});

const tools = ['cmake', 'compiler', 'make', 'patch', ...VULKAN_TOOLS];
requireTools(tools, 'The Vulkan library cannot be built. ');
buildGpuLibrary('vulkan', options.floats ? ['-DVOXGATE_VULKAN_FLOATS=ON'] : [], {
  title: 'Compile the shaders and the library',
  jobs: options.jobs,
  whisperSource: options['whisper-source'],
  kind: options.floats ? '-floats' : '',
});
