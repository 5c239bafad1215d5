/** Chooses the device that models run on, and explains the choice when the operator may have meant another one. */
import { existsSync } from 'node:fs';
import type { ComputeDevice } from './types.ts';

export interface ChosenDevice {
  /** `cpu` or `cuda:<n>`, as `LoadOptions.device` takes it. */
  device: string;
  gpu: boolean;
}

const CPU: ChosenDevice = { device: 'cpu', gpu: false };

/**
 * The device for the models. A GPU that is missing costs speed but not the service, so the choice is then the CPU.
 * @param wanted SVC_DEVICE: auto, cpu, cuda or cuda:<n>
 */
export function chooseDevice(wanted: string, devices: readonly ComputeDevice[]): ChosenDevice {
  const index = Number(wanted.split(':')[1] ?? 0);
  if (wanted === 'cpu' || index >= countGpus(devices)) return CPU;
  return { device: `cuda:${index}`, gpu: true };
}

export interface GpuFacts {
  /** True when this build has ggml's CUDA library. */
  library: boolean;
  /** True when the machine has a GPU, whether this build can use it or not. */
  present: boolean;
}

/** The line to log at the start when models run on the CPU although SVC_DEVICE is not `cpu`; else null. */
export function explainCpu(
  wanted: string,
  devices: readonly ComputeDevice[],
  { library, present }: GpuFacts,
): { level: 'info' | 'warn'; message: string } | null {
  if (wanted === 'cpu' || chooseDevice(wanted, devices).gpu) return null;
  const gpus = countGpus(devices);
  if (wanted === 'auto' && !present)
    return { level: 'info', message: 'Models run on the CPU: no NVIDIA GPU was found here' };
  const found = gpus === 1 ? '1 GPU is' : `${gpus} GPUs are`;
  const why =
    wanted === 'auto'
      ? 'This machine has a GPU, but models run on the CPU'
      : `SVC_DEVICE is ${wanted}, but ${found} usable here: models run on the CPU`;
  const cure = library
    ? 'The CUDA library of this build finds no GPU: check nvidia-smi, and the log with SVC_LOG_LEVEL=debug'
    : 'This build has no CUDA library: npm run build:cuda makes it (experimental)';
  const advice = gpus > 0 ? '' : `. ${cure}. If the CPU is what you want, set SVC_DEVICE=cpu`;
  return { level: 'warn', message: `${why}${advice}` };
}

const countGpus = (devices: readonly ComputeDevice[]) => devices.filter((device) => device.gpu).length;

/** Device files of the NVIDIA driver, which also exist in containers that were given a GPU; WSL 2 has `dxg`. */
const GPU_FILES = ['/dev/nvidiactl', '/dev/nvidia0', '/dev/dxg'];

/** True when the NVIDIA driver has made a device file on this machine. */
export function hasGpu(): boolean {
  return GPU_FILES.some((path) => existsSync(path));
}
