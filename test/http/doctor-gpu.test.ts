/** `voxgate doctor` says why a GPU of NVIDIA is not used, or will not do, in one sentence that says what to do. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { gpuFinding } from '../../src/cli/gpu-check.ts';
import { readConfig } from '../../src/config/config.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { missingEngine } from '../../src/engine/missing-engine.ts';
import { nvidiaFacts } from '../../src/engine/nvidia.ts';
import type { EngineInfo, NativeEngine } from '../../src/engine/types.ts';

/** An H100 on the bus, with its driver and its devices. */
const FILES = {
  'sys/bus/pci/devices/0000:01:00.0/vendor': '0x10de\n',
  'sys/bus/pci/devices/0000:01:00.0/class': '0x030200\n',
  'sys/bus/pci/devices/0000:02:00.0/vendor': '0x1af4\n',
  'sys/bus/pci/devices/0000:02:00.0/class': '0x030000\n',
  'proc/driver/nvidia/version':
    'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.14  Release Build\nGCC version: 12.2.0\n',
  'dev/nvidiactl': '',
};
const IDLE = '9.0, 81559, 81000, Disabled, Default';
const GIB = 1024 ** 3;

interface Machine {
  files?: Record<string, string>;
  /** What `nvidia-smi` shows of the GPU; null where it is not installed. */
  gpu?: string | null;
  processes?: string;
  /** What it says instead. */
  failure?: string;
  env?: NodeJS.ProcessEnv;
  info?: Partial<EngineInfo>;
  loadErrors?: ReturnType<NativeEngine['gpuLoadErrors']>;
  gpuErrors?: string[];
}

const cuda = (memoryBytes = 80 * GIB) => ({ name: 'CUDA0', description: 'H100', gpu: true, memoryBytes });
const withGpu = (memoryBytes?: number): Partial<EngineInfo> => ({
  devices: [cuda(memoryBytes)],
  cudaArchitectures: '800,860,890,900',
});

/** What the doctor says of a machine, as `state: sentence`. */
async function said(t: TestContext, machine: Machine = {}): Promise<string> {
  const { files = FILES, gpu = IDLE, processes = '', failure, env = {}, info = {}, gpuErrors = [] } = machine;
  const { loadErrors = {} } = machine;
  const root = mkdtempSync(join(tmpdir(), 'voxgate-doctor-gpu-'));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const shows = `case "$1" in --query-gpu=*) echo '${gpu}';; *) printf '%b' '${processes}';; esac`;
  const smi = failure === undefined ? shows : `echo '${failure}'; exit 9`;
  if (gpu !== null) writeFileSync(join(root, 'nvidia-smi'), `#!/bin/sh\n${smi}\n`, { mode: 0o755 });
  const { config } = readConfig({ SVC_MODEL_DEFAULT_SIZE: 'large-v3', ...env });
  const own = { ...missingEngine().info, gpuLibraries: ['cuda'] as const, ...info };
  const device = chooseDevice(config.device, own.devices);
  const engine = { info: own, gpuLoadErrors: () => loadErrors };
  const store = { filesOf: () => [] };
  const facts = await nvidiaFacts(root, root);
  const { state, says } = gpuFinding({ config, engine, store, device, gpuErrors }, facts);
  if (says.includes('because')) assert.doesNotMatch(says, /\n|\. [A-Z]/, 'one sentence');
  return `${state}: ${says}`;
}

const without = (...paths: string[]) =>
  Object.fromEntries(Object.entries(FILES).filter(([name]) => !paths.some((path) => name.startsWith(path))));

test('a GPU that works is all right, and so is a machine without one', async (t) => {
  assert.equal(await said(t, { info: withGpu() }), 'ok: cuda:0: CUDA0');
  assert.match(
    await said(t, { files: {}, gpu: null }),
    /^ok: Models run on the CPU: no NVIDIA GPU was found/,
  );
  assert.equal(await said(t, { env: { SVC_DEVICE: 'cpu' } }), 'ok: not used, as SVC_DEVICE=cpu says');
  assert.match(await said(t, { info: { gpuLibraries: [] } }), /^warning: .*CUDA library is not installed/);
});

test('no driver', async (t) => {
  const says = await said(t, { files: without('proc', 'dev'), gpu: null });
  assert.match(
    says,
    /^warning: models run on the CPU, because .* no driver for it: install the driver of NVIDIA/,
  );
});

test('a driver that is too old, was updated, or does not answer', async (t) => {
  const gpuErrors = [
    'ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version',
  ];
  const old = await said(t, { gpuErrors });
  assert.match(
    old,
    /driver 550\.54\.14 is older than the CUDA library: install a newer one \(CUDA 12 needs 525/,
  );
  const failure = 'Failed to initialize NVML: Driver/library version mismatch';
  assert.match(await said(t, { failure }), /was updated while it ran: restart the machine/);
  const silent = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.";
  assert.match(
    await said(t, { failure: silent.replace("'", '') }),
    /nvidia-smi says "NVIDIA-SMI has failed .*mend the driver/,
  );
  const other = ['ggml_cuda_init: failed to initialize CUDA: system not yet initialized'];
  assert.match(await said(t, { gpuErrors: other }), /CUDA says "system not yet initialized": mend/);
});

test('a GPU for which the library has no code', async (t) => {
  const says = await said(t, { gpu: '7.5, 15360, 15000, Disabled, Default', info: withGpu() });
  assert.match(
    says,
    /cuda:0 has compute capability 7\.5, for which .*no code: build it with --architectures=75$/,
  );
});

test('a library that CUDA or the driver should have brought', async (t) => {
  const error = (library: string) => ({
    loadErrors: { cuda: `${library}: cannot open shared object file: No such file or directory` },
  });
  const cublas = await said(t, error('libcublas.so.12'));
  assert.match(cublas, /needs cuBLAS, and libcublas\.so\.12 is not beside it: run npm run build -- cuda$/);
  const driver = await said(t, error('libcuda.so.1'));
  assert.match(driver, /libcuda\.so\.1 of the driver .*NVIDIA_DRIVER_CAPABILITIES=compute,utility/);
  const none = await said(t, { files: {}, gpu: null, ...error('libcuda.so.1') });
  assert.match(none, /^ok: .*no NVIDIA GPU was found/);
  const broken = await said(t, { loadErrors: { cuda: 'libggml-cuda.so: file too short' } });
  assert.match(broken, /cannot be loaded \(libggml-cuda\.so: file too short\): build or install it again/);
});

test('too little memory for the model', async (t) => {
  const small = { gpu: '8.6, 2048, 2000, Disabled, Default', info: withGpu(2 * GIB) };
  assert.match(
    await said(t, small),
    /has 2\d{3} MB, and multilingual-large-v3 needs \d+ MB: choose a smaller one with SVC_MODEL_DEFAULT_SIZE/,
  );
  assert.match(await said(t, { ...small, env: { SVC_MODEL_DEFAULT_SIZE: 'base' } }), /^ok/);
});

test('memory that another process holds', async (t) => {
  const processes = '4711, /usr/bin/python3, 79000\\n';
  const part = await said(t, { gpu: '9.0, 81559, 2000, Disabled, Default', processes, info: withGpu() });
  assert.match(
    part,
    /has 2\d{3} MB free of .*: end \/usr\/bin\/python3 \(4711, 79000 MiB\), or it runs on the CPU$/,
  );
  const all = await said(t, { gpu: '9.0, 81559, 100, Disabled, Default', processes });
  assert.match(all, /python3 \(4711, 79000 MiB\) leave no memory of the GPU: end them/);
  const exclusive = await said(t, { gpu: '9.0, 81559, 70000, Disabled, Exclusive_Process', processes });
  assert.match(exclusive, /only one process may use the GPU, and .*python3.*nvidia-smi -c DEFAULT$/);
});

test('a GPU in MIG mode', async (t) => {
  const gpu = '9.0, 81559, 81000, Enabled, Default';
  assert.match(
    await said(t, { gpu }),
    /in MIG mode and CUDA finds no instance: make one .*CUDA_VISIBLE_DEVICES/,
  );
  // Of an instance only the engine knows the memory.
  assert.match(await said(t, { gpu, info: withGpu(10 * GIB) }), /^ok/);
  assert.match(
    await said(t, { gpu, info: withGpu(2 * GIB) }),
    /has 2\d{3} MB, and multilingual-large-v3 needs/,
  );
});

test('a container that was given no devices, and a variable that hides them', async (t) => {
  const says = await said(t, { files: without('dev'), gpu: null });
  assert.match(says, /driver 550\.54\.14 of NVIDIA runs, but \/dev has no GPU: .*docker run --gpus all/);
  const hidden = await said(t, { env: { CUDA_VISIBLE_DEVICES: '-1' } });
  assert.match(hidden, /CUDA_VISIBLE_DEVICES="-1" leaves no GPU: name one of nvidia-smi -L, or unset it$/);
});
