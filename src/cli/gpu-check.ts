/** Why a GPU of NVIDIA is not used, or will not do, and what to do: one sentence for each cause that can be seen. */
import type { Config } from '../config/config.ts';
import { type ChosenDevice, explainCpu } from '../engine/device.ts';
import type { NvidiaFacts } from '../engine/nvidia.ts';
import { howToGetGpuLibrary } from '../engine/prebuilt.ts';
import type { NativeEngine } from '../engine/types.ts';
import { findModel } from '../models/catalogue.ts';
import { megabytes } from '../models/disk.ts';
import { memoryNeeds } from '../models/memory.ts';
import type { ModelStore } from '../models/store.ts';
import { type Finding, ok, warning } from './folder-checks.ts';

export interface GpuCheckInput {
  config: Config;
  engine: Pick<NativeEngine, 'info' | 'gpuLoadErrors'>;
  store: Pick<ModelStore, 'filesOf'>;
  device: ChosenDevice;
  /** The errors that the native libraries logged while they looked for GPUs. */
  gpuErrors?: readonly string[];
}

/** Less than this is not enough for CUDA itself, so a GPU with less free memory is left out as if it were not there. */
const CUDA_BYTES = 512 * 1024 * 1024;
/** The first driver of each major version of CUDA, of which all later ones have what its libraries need. */
const DRIVERS = 'CUDA 12 needs 525 or newer, CUDA 13 580 or newer';

export function gpuFinding(input: GpuCheckInput, facts: NvidiaFacts): Finding {
  const { config, engine, device } = input;
  const { devices, gpuLibraries } = engine.info;
  if (config.device === 'cpu') return ok('not used, as SVC_DEVICE=cpu says');
  if (device.gpu) {
    const doubt = device.device.startsWith('cuda') ? codeOrMemory(input, facts) : null;
    return doubt === null
      ? ok(`${device.device}: ${devices.find((found) => found.gpu)?.name}`)
      : warning(`${device.device} ${doubt}`);
  }
  const wantsCuda = /^(auto|cuda)/.test(config.device);
  const why = wantsCuda
    ? (machine(facts) ?? (gpuLibraries.includes('cuda') ? library(input, facts) : null))
    : null;
  if (why !== null) return warning(`models run on the CPU, because ${why}`);
  const present = facts.onBus || facts.hasDevices;
  const cpuOnly = explainCpu(config.device, devices, { libraries: gpuLibraries, present });
  return cpuOnly?.level === 'warn' ? warning(cpuOnly.message) : ok(cpuOnly?.message ?? 'not used');
}

/** Returns what is wrong with the machine itself, such as a missing driver; null when nothing is. */
function machine({ onBus, driver, hasDevices, failure }: NvidiaFacts): string | null {
  if (onBus && driver === null && !hasDevices)
    return 'this machine has an NVIDIA GPU and no driver for it: install the driver of NVIDIA';
  if (driver !== null && !hasDevices)
    return `driver ${driver} of NVIDIA runs, but /dev has no GPU: start the container with it (docker run --gpus all), or outside of one run nvidia-modprobe -u -c 0`;
  if (failure !== null && /version mismatch/i.test(failure))
    return 'the driver of NVIDIA was updated while it ran: restart the machine';
  if (failure !== null && (onBus || hasDevices))
    return `nvidia-smi says "${failure}": mend the driver until it shows the GPU`;
  return null;
}

/** What keeps the CUDA library from finding a GPU. */
function library({ config, engine, gpuErrors = [] }: GpuCheckInput, facts: NvidiaFacts): string | null {
  const { gpus, driver, processes } = facts;
  const unloaded = engine.gpuLoadErrors().cuda;
  const missing = /^(lib[^\s:/]+): cannot open shared object/.exec(unloaded ?? '')?.[1];
  if (missing?.startsWith('libcuda.'))
    return facts.hasDevices
      ? `${missing} of the driver is not here: start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility, or outside of one install the driver's libraries`
      : null;
  if (missing !== undefined)
    return `the CUDA library needs ${nameOf(missing)}, and ${missing} is not beside it: ${howToGetGpuLibrary('cuda')}`;
  if (unloaded !== undefined)
    return `the CUDA library cannot be loaded (${unloaded}): build or install it again`;
  const error = gpuErrors
    .findLast((line) => /initialize CUDA/.test(line))
    ?.split('CUDA: ')
    .at(-1);
  if (error !== undefined && /driver version is insufficient/.test(error))
    return `driver ${driver ?? 'of NVIDIA'} is older than the CUDA library: install a newer one (${DRIVERS})`;
  const hidden = config.environment.CUDA_VISIBLE_DEVICES;
  if (gpus.length > 0 && gpus.every(({ isSplit }) => isSplit))
    return 'the GPU is in MIG mode and CUDA finds no instance: make one (nvidia-smi mig -cgi), name it in CUDA_VISIBLE_DEVICES, or switch MIG off (nvidia-smi -mig 0)';
  if (gpus.length > 0 && hidden !== undefined)
    return `CUDA_VISIBLE_DEVICES="${hidden}" leaves no GPU: name one of nvidia-smi -L, or unset it`;
  const holders = processes.join(', ') || 'other processes';
  if (processes.length > 0 && gpus.length > 0 && gpus.every(({ isExclusive }) => isExclusive))
    return `only one process may use the GPU, and ${holders} does: end it, or run nvidia-smi -c DEFAULT`;
  if (gpus.length > 0 && gpus.every(({ freeBytes }) => freeBytes < CUDA_BYTES))
    return `${holders} leave no memory of the GPU: end them, then start the gateway again`;
  return error === undefined ? null : `CUDA says "${error}": mend the driver until nvidia-smi shows the GPU`;
}

/** Why the GPU that was found will not do. */
function codeOrMemory(
  { config, engine, store }: GpuCheckInput,
  { gpus, processes }: NvidiaFacts,
): string | null {
  const whole = gpus.filter(({ isSplit }) => !isSplit);
  const oldest = Math.min(...engine.info.cudaArchitectures.split(',').map((number) => Number(number) / 10));
  const capability = Math.max(...gpus.map((gpu) => gpu.capability));
  if (gpus.length > 0 && oldest > capability)
    return `has compute capability ${capability / 10}, for which the CUDA library has no code: build it with --architectures=${capability}`;
  const id = `multilingual-${config.modelDefaultSize}`;
  const model = findModel(id);
  const needed =
    (model && memoryNeeds(model, 'f16', { threads: config.threads, files: store.filesOf(id) })?.bytes) ?? 0;
  const total = Math.max(
    ...engine.info.devices.map(({ gpu, memoryBytes }) => (gpu ? memoryBytes : 0)),
    ...whole.map(({ totalBytes }) => totalBytes),
  );
  if (total > 0 && total < needed)
    return `has ${megabytes(total)}, and ${id} needs ${megabytes(needed)}: choose a smaller one with SVC_MODEL_DEFAULT_SIZE, or SVC_DEVICE=cpu`;
  const free = Math.max(...whole.map(({ freeBytes }) => freeBytes));
  if (whole.length > 0 && free < needed)
    return `has ${megabytes(free)} free of ${megabytes(total)}, and ${id} needs ${megabytes(needed)}: end ${processes.join(', ') || 'what else uses it'}, or it runs on the CPU`;
  return null;
}

/** What people call the libraries of CUDA. */
const nameOf = (library: string) =>
  library.startsWith('libcublas') ? 'cuBLAS' : library.startsWith('libcudart') ? "CUDA's run time" : library;
