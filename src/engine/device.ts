/** Chooses the device that models run on, and explains the choice when the operator may have meant another one. */
import { howToGetGpuLibrary } from './prebuilt.ts';
import { type ComputeDevice, GPU_LIBRARIES, type GpuLibrary } from './types.ts';

export interface ChosenDevice {
  /** `cpu`, `cuda:<n>` or `vulkan:<n>`, as `LoadOptions.device` takes it. */
  device: string;
  gpu: boolean;
}

const CPU: ChosenDevice = { device: 'cpu', gpu: false };

/**
 * The device for the models. A GPU that is missing costs speed but not the service, so the choice is then the CPU.
 * Where two libraries see the same GPU, `auto` takes CUDA.
 * @param wanted SVC_DEVICE: auto, cpu, cuda, vulkan, cuda:<n> or vulkan:<n>
 */
export function chooseDevice(wanted: string, devices: readonly ComputeDevice[]): ChosenDevice {
  const { libraries, index } = parse(wanted);
  const library = libraries.find((name) => countGpus(devices, [name]) > index);
  return library === undefined ? CPU : { device: `${library}:${index}`, gpu: true };
}

export interface GpuFacts {
  /** What this build has. */
  libraries: readonly GpuLibrary[];
  /** True when the machine has a GPU of NVIDIA, whether this build can use it or not. */
  present: boolean;
}

/** The line to log at the start when models run on the CPU although SVC_DEVICE is not `cpu`; else null. */
export function explainCpu(
  wanted: string,
  devices: readonly ComputeDevice[],
  { libraries, present }: GpuFacts,
): { level: 'info' | 'warn'; message: string } | null {
  if (wanted === 'cpu' || chooseDevice(wanted, devices).gpu) return null;
  const { libraries: asked } = parse(wanted);
  const gpus = countGpus(devices, asked);
  if (wanted === 'auto' && !present) {
    const kind = libraries.includes('vulkan') ? 'GPU' : 'NVIDIA GPU';
    return { level: 'info', message: `Models run on the CPU: no ${kind} was found here` };
  }
  const found = gpus === 1 ? '1 GPU is' : `${gpus} GPUs are`;
  const why =
    wanted === 'auto'
      ? 'This machine has a GPU, but models run on the CPU'
      : `SVC_DEVICE is ${wanted}, but ${found} usable here: models run on the CPU`;
  const library = asked.find((name) => libraries.includes(name));
  const missing = asked[0] ?? 'cuda';
  const cure = library
    ? `The ${NAMES[library].name} library of this build finds no GPU: check ${NAMES[library].tool}, and the log with SVC_LOG_LEVEL=debug`
    : `The ${NAMES[missing].name} library is not installed: ${howToGetGpuLibrary(missing)} (experimental)`;
  const advice = gpus > 0 ? '' : `. ${cure}. If the CPU is what you want, set SVC_DEVICE=cpu`;
  return { level: 'warn', message: `${why}${advice}` };
}

/** The libraries that SVC_DEVICE asks for, in order, and the number of the GPU among those of one library. */
function parse(wanted: string): { libraries: readonly GpuLibrary[]; index: number } {
  const [name, index = '0'] = wanted.split(':');
  const libraries = name === 'auto' ? GPU_LIBRARIES : GPU_LIBRARIES.filter((library) => library === name);
  return { libraries, index: Number(index) };
}

/** Counts the GPUs that these libraries see. ggml calls its devices `CUDA0` and `Vulkan0`. */
function countGpus(devices: readonly ComputeDevice[], libraries: readonly GpuLibrary[]): number {
  const seen = ({ name, gpu }: ComputeDevice) =>
    gpu && libraries.some((library) => name.toLowerCase().startsWith(library));
  return devices.filter(seen).length;
}

const NAMES: Record<GpuLibrary, { name: string; tool: string }> = {
  cuda: { name: 'CUDA', tool: 'nvidia-smi' },
  vulkan: { name: 'Vulkan', tool: 'vulkaninfo --summary' },
};
