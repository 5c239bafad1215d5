/**
 * Measures this machine's GPU and prints one page of Markdown: what ran, whether the GPU says what the CPU says, and
 * the peers on the same GPU. A step that fails is named with its reason, and the others go on.
 * scripts/gpu-report.mjs starts it. The page is kept in build/gpu-report.md.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { hashFile } from '../../src/models/disk.ts';
import { Records } from '../../src/models/records.ts';
import { describeMachine, ownVersion, ROOT } from '../common/machine.ts';
import { SHAPES, writeSyntheticModel } from '../growth/synthetic-model.ts';
import { baseCheckpoint, benchPython } from '../peers/python.ts';
import { type DeviceRun, type Findings, GPU_QUERY, gpuPage, parseGpus, reasonOf } from './page.ts';

const FOLDER = join(ROOT, 'build/gpu-report');
const PEERS = 'voxgate,faster-whisper,faster-whisper-beam-5,faster-whisper-batched';
const CLASSES = ['commands', 'sentences', '60s', '6min', '60min'];
const MINUTES = 60_000;

const findings: Findings = { facts: [], steps: [], models: [], comparisons: '' };
mkdirSync(FOLDER, { recursive: true });

await step('addon and gateway', () => npm('build'));
await step('CUDA library', () => npm('build', ['cuda'], 240));
await step('the addon finds the GPU', () => {
  const script = `
    const { loadNative } = await import('./dist/engine/addon.js');
    const { whisperVersion, ggmlVersion, cpuLevel, devices } = loadNative(undefined, { gpus: true }).info;
    console.log(JSON.stringify([whisperVersion, ggmlVersion, cpuLevel, devices.find(({ gpu }) => gpu)?.name ?? '']));`;
  const [whisper, ggml, level, gpu] = JSON.parse(
    program(process.execPath, ['--input-type=module', '-e', script]),
  );
  findings.facts.push(['whisper.cpp, ggml', `${whisper}, ${ggml}`], ['level of the CPU', level]);
  if (gpu === '') throw new Error('it finds none: see `SVC_LOG_LEVEL=debug npx voxgate doctor`');
});
await step('native tests of the guard around a GPU', () => npm('test:native', ['gpu guard']));

for (const id of ['multilingual-base', 'european', 'cjk']) {
  const family = { 'multilingual-base': 'whisper', european: 'parakeet', cjk: 'sensevoice' }[id] ?? '';
  await step(`${id}, published weights`, () => compare(id, family, pull(id, 'cpu'), pull(id, 'cuda')));
}
// Weights that anyone has, for where the published ones cannot be fetched.
await step('european, small weights of the tests', () =>
  compare('european (small)', 'parakeet', join(ROOT, 'test/native/data/parakeet-script.bin')),
);
await step('cjk, small weights of the tests', () =>
  compare('cjk (small)', 'sensevoice', join(ROOT, 'test/native/data/sensevoice/tones.gguf')),
);
const turbo = SHAPES['large-v3-turbo'];
for (const [name, textLayers] of [['large-v3-turbo', 4] as const, ['large-v3', 32] as const])
  await step(`${name}, random weights`, async () => {
    if (turbo === undefined) throw new Error('no such shape');
    const path = join(FOLDER, `${name}.bin`);
    try {
      await writeSyntheticModel(path, { ...turbo, textLayers });
      compare(`${name} (random)`, 'whisper', path);
    } finally {
      rmSync(path, { force: true });
    }
  });

for (const only of CLASSES)
  await step(`comparison with peers, base, ${only}`, () =>
    compareWithPeers(only, [`${PEERS},whisper-server`]),
  );
const WIDE = {
  id: 'multilingual-large-v3-turbo',
  file: 'ggml-large-v3-turbo.bin',
  checkpoint: join(FOLDER, 'wide'),
};
const WIDE_MODELS = join(FOLDER, 'models');
const isWide = await step("base's words in the shape of large-v3-turbo", async () => {
  mkdirSync(WIDE_MODELS, { recursive: true });
  const file = join(WIDE_MODELS, WIDE.file);
  const script = join(ROOT, 'bench/gpu/widened_whisper.py');
  const shape = ['1280', '32', '6']; // base has six layers in its decoder, turbo four
  const base = [pull('multilingual-base', 'cuda'), baseCheckpoint()];
  program(benchPython(), [script, ...base, ...shape, file, WIDE.checkpoint]);
  const sha256 = await hashFile(file, new AbortController().signal);
  await new Records(WIDE_MODELS).write(WIDE.file, sha256, 'import');
  process.env.SVC_MODEL_DIR = WIDE_MODELS;
  pull('voice-activity', 'cpu');
  compare('base, widened', 'whisper', file);
});
for (const only of isWide ? CLASSES : [])
  await step(`comparison with peers, base widened, ${only}`, () => {
    findings.comparisons += `**${WIDE.id} is the shape here, and the words are those of base.**\n\n`;
    compareWithPeers(only, [PEERS, '--model', WIDE.checkpoint, '--gateway-model', WIDE.id]);
  });
rmSync(WIDE_MODELS, { recursive: true, force: true });
rmSync(WIDE.checkpoint, { recursive: true, force: true });

findings.facts.unshift(...machineFacts());
const page = gpuPage(findings);
writeFileSync(join(ROOT, 'build/gpu-report.md'), `${page}\n`);
process.stdout.write(`${page}\n`);

/** Whether it succeeded. */
async function step(title: string, act: () => unknown): Promise<boolean> {
  process.stderr.write(`\n== ${title}\n`);
  const begin = performance.now();
  let failure: string | null = null;
  try {
    await act();
  } catch (error) {
    failure = reasonOf((error as Error).message);
    process.stderr.write(`== ${title}: ${failure}\n`);
  }
  findings.steps.push({ title, failure, seconds: (performance.now() - begin) / 1000 });
  return failure === null;
}

/** What the program wrote on its output. @throws Error with what it wrote last, where it fails */
function program(
  command: string,
  args: string[],
  limitMinutes = 30,
  env: Record<string, string> = {},
): string {
  const { status, signal, error, stdout, stderr } = spawnSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    timeout: limitMinutes * MINUTES,
    env: { ...process.env, ...env },
  });
  process.stderr.write(stderr ?? '');
  if (error) throw error;
  if (status !== 0) throw new Error(stderr.trim() || stdout.trim() || `it ended by ${signal ?? status}`);
  return stdout;
}

function npm(script: string, args: string[] = [], limitMinutes?: number): string {
  return program('npm', ['run', '--silent', script, '--', ...args], limitMinutes);
}

/** The path of the weights that suit a device. */
function pull(id: string, device: string): string {
  const said = program(process.execPath, ['dist/main.js', 'models', 'pull', id], 60, { SVC_DEVICE: device });
  return said.trim().split('\n').at(-1) ?? '';
}

function compare(model: string, family: string, ...files: string[]): void {
  const said = program(process.execPath, ['--import', 'tsx', 'bench/gpu/model.ts', family, ...files]);
  findings.models.push({ model, ...(JSON.parse(said) as { cpu: DeviceRun; gpu: DeviceRun }) });
}

function compareWithPeers(only: string, peers: string[]): void {
  // A lane on the GPU keeps a thread of the CPU busy.
  const threads = String(Math.min(availableParallelism(), 16));
  const args = ['--device', 'cuda', '--threads', threads, '--only', only, '--peers', ...peers];
  const said = npm('bench', args, 60);
  findings.comparisons += `${said.slice(said.indexOf('###'))}\n\n`;
}

function machineFacts(): [string, string][] {
  const csv = program('nvidia-smi', [`--query-gpu=${GPU_QUERY}`, '--format=csv,noheader']);
  const toolkit = spawnSync('nvcc', ['--version'], { encoding: 'utf8' }).stdout ?? '';
  return [
    ...parseGpus(csv).map(({ name, memory, capability, driver }): [string, string] => [
      'GPU',
      `${name}, ${memory}, compute capability ${capability}, driver ${driver}`,
    ]),
    ['CUDA toolkit', /release [\d.]+/.exec(toolkit)?.[0] ?? 'not on PATH'],
    ['machine', describeMachine()],
    ['voxgate', `${ownVersion()}, Node ${process.version}`],
  ];
}
