import type { ComputeDevice } from './types.ts';

export interface ChosenDevice {
  /** As `LoadOptions.device` takes it. */
  device: string;
  gpu: boolean;
  /** What the operator should know: the device asked for is not there. */
  warning?: string;
}

const CPU: ChosenDevice = { device: 'cpu', gpu: false };

/** `wanted` is SVC_DEVICE: auto, cpu, cuda or cuda:<n>. A GPU that is not there costs speed, not service. */
export function chooseDevice(wanted: string, devices: readonly ComputeDevice[]): ChosenDevice {
  if (wanted === 'cpu') return CPU;
  const gpus = devices.filter((device) => device.gpu).length;
  const index = Number(wanted.split(':')[1] ?? 0);
  if (index < gpus) return { device: `cuda:${index}`, gpu: true };
  if (wanted === 'auto') return CPU;
  const found = gpus === 1 ? '1 GPU is' : `${gpus} GPUs are`;
  return { ...CPU, warning: `SVC_DEVICE is ${wanted}, but ${found} usable here: models run on the CPU` };
}
