/**
 * Times the families beside Whisper against transcribe.cpp with the same weights, and against onnxruntime with encoders
 * of the same shapes, on the same number of threads. Weights are generated, so there are no words.
 *
 *   npm run bench -- encoders --parakeet FILE --sensevoice FILE [--threads 1,2] [--seconds 5,11,30] [--rounds N]
 *     [--peers transcribe.cpp,onnxruntime]
 *
 * The files come from test/native/generate-parakeet.py --full and bench/encoders/sensevoice_weights.py. voxgate's time
 * and that of transcribe.cpp are of whole calls: both compute the features and decode too, which onnxruntime is not
 * asked for. With --layers N the encoders of onnxruntime have that many, which compares nothing but is soon made.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadNative } from '../../src/engine/addon.ts';
import { GREEDY_TEXT } from '../common/engine.ts';
import { ROOT } from '../common/machine.ts';
import { median } from '../common/numbers.ts';
import { RATE } from '../common/samples.ts';
import { startJsonLines } from '../peers/json-lines.ts';
import { ensureVenv } from '../peers/python.ts';
import { startTranscribeCpp, type TranscribeCppAnswer, writeParakeetGguf } from '../peers/transcribe-cpp.ts';

const PINS = ['torch==2.13.0', 'onnx==1.23.2', 'onnxruntime==1.31.1', 'numpy==2.4.6'];

interface Family {
  name: 'parakeet' | 'sensevoice';
  network: string;
  width: number;
  /** Rows that the network gets for this many seconds. */
  frames: (seconds: number) => number;
}
const FAMILIES: readonly Family[] = [
  { name: 'parakeet', network: 'fastconformer', width: 128, frames: (s) => 100 * s + 1 },
  // Four queries stand before the audio, of which every sixth frame begins a row.
  { name: 'sensevoice', network: 'sanm', width: 560, frames: (s) => Math.ceil((100 * s - 2) / 6) + 4 },
];

interface Time {
  wall: number;
  cpu: number;
}
interface Runner extends AsyncDisposable {
  run: (seconds: number) => Promise<Time>;
}

const FOLDER = join(ROOT, 'build/encoders');

const samplesOf = (seconds: number) =>
  Float32Array.from({ length: seconds * RATE }, (_, i) => 0.3 * Math.sin((i % 4000) ** 2 / 1e5));

async function voxgate(family: Family, path: string, threads: number): Promise<Runner> {
  const model = await loadNative().loadModel({ family: family.name, path, device: 'cpu', threads });
  return {
    async run(seconds) {
      const samples = samplesOf(seconds);
      const [begin, before] = [performance.now(), process.cpuUsage()];
      await model.transcribe(samples, { ...GREEDY_TEXT, times: false });
      const { user, system } = process.cpuUsage(before);
      return { wall: performance.now() - begin, cpu: (user + system) / 1000 };
    },
    [Symbol.asyncDispose]: () => model.close(),
  };
}

async function transcribeCpp(family: Family, path: string, threads: number): Promise<Runner> {
  mkdirSync(FOLDER, { recursive: true });
  const theirs = family.name === 'parakeet' ? join(FOLDER, 'parakeet.gguf') : path;
  if (theirs !== path) writeParakeetGguf(path, theirs);
  const peer = await startTranscribeCpp(theirs, threads);
  const audio = join(FOLDER, 'audio.f32');
  return {
    ...peer,
    async run(seconds) {
      writeFileSync(audio, new Uint8Array(samplesOf(seconds).buffer));
      const begin = performance.now();
      const { cpu } = await peer.ask<TranscribeCppAnswer>({ path: audio });
      return { wall: performance.now() - begin, cpu };
    },
  };
}

async function onnxruntime(python: string, family: Family, path: string, threads: number): Promise<Runner> {
  const script = 'encoders/encoder_peer.py';
  const peer = await startJsonLines('onnxruntime', python, [script, path, threads, family.width]);
  return { ...peer, run: (seconds) => peer.ask<Time>({ frames: family.frames(seconds) }) };
}

function models(python: string, family: Family): { fp32: string; int8: string } {
  const layers = values.layers === undefined ? [] : [values.layers];
  const folder = join(FOLDER, [family.network, ...layers].join('-'));
  const made = { fp32: join(folder, 'fp32.onnx'), int8: join(folder, 'int8.onnx') };
  const script = join(ROOT, 'bench/encoders/encoder_models.py');
  if (!existsSync(made.int8))
    execFileSync(python, [script, family.network, folder, ...layers], { stdio: 'inherit' });
  return made;
}

const { values } = parseArgs({
  options: {
    parakeet: { type: 'string' },
    sensevoice: { type: 'string' },
    threads: { type: 'string', default: '1,2' },
    seconds: { type: 'string', default: '5,11,30' },
    rounds: { type: 'string', default: '5' },
    'without-fp32': { type: 'boolean', default: false },
    layers: { type: 'string' },
    peers: { type: 'string', default: 'onnxruntime' },
  },
});
const peers = values.peers.split(',');
const numbers = (text: string) => text.split(',').map(Number);
process.stdout.write(
  '| family | threads | seconds | program | wall ms | CPU ms | ratio, wall | ratio, CPU |\n',
);
process.stdout.write('| --- | --- | --- | --- | --- | --- | --- | --- |\n');
for (const family of FAMILIES) {
  const path = values[family.name];
  if (path === undefined) {
    process.stderr.write(`Without ${family.name}: --${family.name} names no file\n`);
    continue;
  }
  for (const threads of numbers(values.threads)) {
    const runners = new Map<string, Runner>([['voxgate', await voxgate(family, path, threads)]]);
    if (peers.includes('transcribe.cpp'))
      runners.set('transcribe.cpp', await transcribeCpp(family, path, threads));
    if (peers.includes('onnxruntime')) {
      const python = ensureVenv('encoder-venv', PINS);
      const { fp32, int8 } = models(python, family);
      runners.set('onnxruntime int8', await onnxruntime(python, family, int8, threads));
      if (!values['without-fp32'])
        runners.set('onnxruntime fp32', await onnxruntime(python, family, fp32, threads));
    }
    for (const seconds of numbers(values.seconds)) await compare(family.name, threads, seconds, runners);
    for (const runner of runners.values()) await runner[Symbol.asyncDispose]();
  }
}

async function compare(family: string, threads: number, seconds: number, runners: Map<string, Runner>) {
  const times = new Map<string, Time[]>([...runners.keys()].map((name) => [name, []]));
  for (let round = -1; round < Number(values.rounds); round++)
    for (const [name, runner] of runners) {
      const time = await runner.run(seconds);
      if (round >= 0) times.get(name)?.push(time); // the first one warms up
    }
  const middle = (name: string, field: keyof Time) =>
    median((times.get(name) ?? []).map((time) => time[field]));
  for (const name of runners.keys()) {
    const [wall, cpu] = [middle(name, 'wall'), middle(name, 'cpu')];
    const ratios = [wall / middle('voxgate', 'wall'), cpu / middle('voxgate', 'cpu')];
    const figures = [wall.toFixed(0), cpu.toFixed(0), ...ratios.map((ratio) => ratio.toFixed(2))];
    process.stdout.write(`| ${[family, threads, seconds, name, ...figures].join(' | ')} |\n`);
  }
}
