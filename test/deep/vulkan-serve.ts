/**
 * `voxgate serve` with the addon of the folder VOXGATE_TEST_ADDON, and with small weights of the files
 * VOXGATE_TEST_FILES (JSON, by model id). The rest is as an operator has it, and so is SVC_DEVICE.
 */
import { join } from 'node:path';
import { run } from '../../src/cli/program.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { scriptedStore } from '../http/scripted-engine.ts';

const { VOXGATE_TEST_ADDON: addon = '', VOXGATE_TEST_FILES: files = '{}' } = process.env;
const paths = JSON.parse(files) as Record<string, string>;

await run(process.argv, (config) => {
  const engine = loadNative(join(addon, 'voxgate.node'), { gpus: config.device !== 'cpu' });
  const store = scriptedStore({ installed: Object.keys(paths) });
  return {
    engine,
    device: chooseDevice(config.device, engine.info.devices),
    store: { ...store, ensure: async (id) => ({ path: paths[id] ?? '' }) },
  };
});
