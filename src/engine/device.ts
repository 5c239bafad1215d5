/** Where models run, and what an operator is told when it is not where they may have meant. */
import { existsSync } from 'node:fs';
import type { ComputeDevice } from './types.ts';

export interface ChosenDevice {
  /** As `LoadOptions.device` takes it. */
  device: string;
  gpu: boolean;
}

const CPU: ChosenDevice = { device: 'cpu', gpu: false };

/** `wanted` is SVC_DEVICE: auto, cpu, cuda or cuda:<n>. A GPU that is not there costs speed, not service. */
export function chooseDevice(wanted: string, devices: readonly ComputeDevice[]): ChosenDevice {
  const index = Number(wanted.split(':')[1] ?? 0);
  if (wanted === 'cpu' || index >= countGpus(devices)) return CPU;
  return { device: `cuda:${index}`, gpu: true };
}

export interface GpuFacts {
  /** This build has ggml's CUDA library. */
  library: boolean;
  /** The machine has a GPU, whether it can be used or not. */
  present: boolean;
}

/** What to say at the start when models run on the CPU although SVC_DEVICE does not ask for that; else null. */
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
    ? 'The CUDA library of this build finds no GPU: see whether nvidia-smi does, and what the log says at SVC_LOG_LEVEL=debug'
    : 'This build has no CUDA library: npm run build:cuda makes it (experimental)';
  const advice = gpus > 0 ? '' : `. ${cure}. SVC_DEVICE=cpu says that the CPU is meant`;
  return { level: 'warn', message: `${why}${advice}` };
}

const countGpus = (devices: readonly ComputeDevice[]) => devices.filter((device) => device.gpu).length;

/** Files that the NVIDIA driver makes, also in containers that are given a GPU; `dxg` is the one of WSL 2. */
const GPU_FILES = ['/dev/nvidiactl', '/dev/nvidia0', '/dev/dxg'];

export function hasGpu(): boolean {
  return GPU_FILES.some((path) => existsSync(path));
}
