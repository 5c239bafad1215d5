/**
 * What the tests of the Vulkan library share: a folder with the addon and that library, small weights of each family in
 * floats, and Mesa's software device (llvmpipe), which ggml takes only where it is named. Where the operator names
 * devices with GGML_VK_VISIBLE_DEVICES, the tests run on those.
 */
import { copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSyntheticModel } from '../../bench/growth/synthetic-model.ts';
import { writeWeights } from '../faults/fail-nth/weights.ts';
import { addonWithout } from '../native/addon-folder.ts';
import { compilePreloadLibrary } from '../preload-library.ts';

/** The library for tests. */
export const LIBRARY = new URL('../../build-vulkan-floats/lib/libggml-vulkan.so', import.meta.url).pathname;
const DRIVERS = '/usr/share/vulkan/icd.d';
const data = (path: string) => new URL(`../native/data/${path}`, import.meta.url).pathname;
const WHISPER = { state: 64, audioLayers: 4, textLayers: 4, mels: 80, vocab: 51865 };

/** The environment in which ggml takes the software device and no other; null where the driver is not installed. */
export function softwareDevice(): Record<string, string> | null {
  if (process.env.GGML_VK_VISIBLE_DEVICES !== undefined) return {};
  const driver = existsSync(DRIVERS) && readdirSync(DRIVERS).find((name) => name.startsWith('lvp_icd'));
  return driver ? { VK_DRIVER_FILES: join(DRIVERS, driver), GGML_VK_VISIBLE_DEVICES: '0' } : null;
}

export interface VulkanWorld {
  /** The folder of the addon, and of the libraries beside it. */
  addon: string;
  /** Names the device. */
  env: Record<string, string>;
  /** Weights by family, in floats. */
  weights: Record<'whisper' | 'parakeet' | 'sensevoice', string>;
  /** Silero's, for which everything is speech. */
  voiceActivity: string;
  /** Whisper's as q8_0, for which the library for tests has no shaders. */
  quantized: string;
  /**
   * Makes a file, and the environment in which a process lets a function of Vulkan fail while the file says so
   * (fail-vulkan.c).
   */
  failing(): { env: Record<string, string>; fail(functionAndResult: string): void; file: string };
  remove(): void;
}

/** Prepares a folder, or gives the reason why nothing can be tested here. */
export async function vulkanWorld(): Promise<VulkanWorld | string> {
  const env = softwareDevice();
  if (!existsSync(LIBRARY)) return 'there is no library for tests: npm run build -- vulkan --floats';
  if (env === null)
    return 'the driver of the software device is not installed: apt-get install mesa-vulkan-drivers';
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-vulkan-'));
  const addon = await addonWithout(dir, 'libggml-vulkan', 'libggml-cuda');
  copyFileSync(LIBRARY, join(addon, 'libggml-vulkan.so'));
  const weights = {
    whisper: join(dir, 'whisper-f16.bin'),
    parakeet: data('parakeet-wide.bin'),
    sensevoice: data('sensevoice/random/model.gguf'),
  };
  const quantized = join(dir, 'whisper-q8_0.bin');
  await writeSyntheticModel(weights.whisper, WHISPER, 'f16');
  await writeSyntheticModel(quantized, WHISPER);
  await writeWeights(dir);
  const preload = compilePreloadLibrary(new URL('./fail-vulkan.c', import.meta.url), dir);
  let files = 0;
  return {
    addon,
    env,
    weights,
    quantized,
    voiceActivity: join(dir, 'weights/voice-activity.bin'),
    failing() {
      if (preload.skip !== false) throw new Error(preload.skip);
      const file = join(dir, `fails-${++files}`);
      writeFileSync(file, '');
      return {
        env: { ...env, LD_PRELOAD: preload.path, VOXGATE_VULKAN_FAILS: file },
        fail: (what) => writeFileSync(file, what),
        file,
      };
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** A sound that is no speech, the same every time: its pitch rises and falls again, faster with each period. */
export function sweep(seconds: number, pace = 4000): Float32Array {
  return Float32Array.from(
    { length: Math.round(seconds * 16_000) },
    (_, i) => 0.3 * Math.sin((i % pace) ** 2 / 1e5),
  );
}
