/** What this machine shows of its NVIDIA GPUs, whether the engine can use them or not. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface NvidiaFacts {
  /** Whether the PCI bus has one, also where no driver knows it. */
  onBus: boolean;
  /** The version of the driver in the kernel, also where a container has none of its devices; null without one. */
  driver: string | null;
  /** Whether the driver's devices are in `/dev`. */
  hasDevices: boolean;
  /** What `nvidia-smi` shows; none where it is not installed or fails. */
  gpus: readonly NvidiaGpu[];
  /** Why `nvidia-smi` fails, as it says it; null where it does not, or is not installed. */
  failure: string | null;
  /** The processes that compute on a GPU, with the memory that they have there. */
  processes: readonly string[];
}

export interface NvidiaGpu {
  /** The compute capability, as `90` for 9.0. */
  capability: number;
  totalBytes: number;
  freeBytes: number;
  /** Whether it is split into instances (MIG). Its memory then is that of all of them. */
  isSplit: boolean;
  /** Whether only one process at a time may use it. */
  isExclusive: boolean;
}

const TIMEOUT_MS = 5000;
const MIB = 1024 * 1024;
const NVIDIA = '0x10de';
/** The class of the PCI devices that are displays or compute. */
const DISPLAY = /^0x03/;
/** In containers that were given a GPU, too; WSL 2 has `dxg`. */
const DEVICES = ['dev/nvidiactl', 'dev/nvidia0', 'dev/dxg'];

/** True when the NVIDIA driver has made a device file on this machine. */
export function hasGpu(root = '/'): boolean {
  return DEVICES.some((path) => existsSync(join(root, path)));
}

/**
 * @param searchPath the folders in which `nvidia-smi` is looked for
 * @param root where the files of the system are
 */
export async function nvidiaFacts(searchPath: string, root = '/'): Promise<NvidiaFacts> {
  const [onBus, driver, smi, processes] = await Promise.all([
    isOnBus(join(root, 'sys/bus/pci/devices')),
    driverVersion(join(root, 'proc/driver/nvidia/version')),
    nvidiaSmi(searchPath, '--query-gpu', [
      ...['compute_cap', 'memory.total', 'memory.free', 'mig.mode.current', 'compute_mode'],
    ]),
    nvidiaSmi(searchPath, '--query-compute-apps', ['pid', 'process_name', 'used_memory']),
  ]);
  return {
    onBus,
    driver,
    hasDevices: hasGpu(root),
    gpus: smi.rows.map(([capability = '', total, free, mig = '', mode = '']) => ({
      capability: Math.round(Number(capability) * 10),
      totalBytes: Number(total) * MIB,
      freeBytes: Number(free) * MIB,
      isSplit: mig === 'Enabled',
      isExclusive: mode === 'Exclusive_Process',
    })),
    failure: smi.failure,
    processes: processes.rows.map(([pid, name, used]) => `${name} (${pid}, ${used} MiB)`),
  };
}

async function isOnBus(folder: string): Promise<boolean> {
  const read = (device: string, file: string) => readFile(join(folder, device, file), 'utf8').catch(() => '');
  for (const device of await readdir(folder).catch(() => []))
    if ((await read(device, 'vendor')).startsWith(NVIDIA) && DISPLAY.test(await read(device, 'class')))
      return true;
  return false;
}

async function driverVersion(path: string): Promise<string | null> {
  const said = await readFile(path, 'utf8').catch(() => '');
  const [line = ''] = said.split('\n'); // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  ..."
  return line.split(/\s/).find((word) => /^\d+\.\d/.test(word)) ?? null;
}

/** The rows of a query; a failure of the program is its first line. */
async function nvidiaSmi(
  searchPath: string,
  query: string,
  fields: string[],
): Promise<{ rows: string[][]; failure: string | null }> {
  const args = [`${query}=${fields.join(',')}`, '--format=csv,noheader,nounits'];
  try {
    const options = { timeout: TIMEOUT_MS, env: { PATH: searchPath } };
    const { stdout } = await promisify(execFile)('nvidia-smi', args, options);
    const lines = stdout.split('\n').filter((line) => line.trim() !== '');
    return { rows: lines.map((line) => line.split(',').map((value) => value.trim())), failure: null };
  } catch (error) {
    const { code, stdout = '', stderr = '' } = error as { code?: unknown; stdout?: string; stderr?: string };
    const [said = ''] = `${stdout}${stderr}`.trim().split('\n');
    return { rows: [], failure: code === 'ENOENT' ? null : said || 'nvidia-smi does not answer' };
  }
}
