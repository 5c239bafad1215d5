/**
 * Measures how time and memory grow with the length of the speech, through HTTP, and with the size of the model.
 *
 *   npm run bench -- growth [--up-to 60 --models tiny,base --rounds 1 --images DIR --write]
 *
 * For the length, one clip is said again and again with pauses between. With pauses of less than 3 s a chunk holds
 * the sentence three times, which looks like a loop of the decoder and is decoded twice. Each length is sent to a
 * process of its own that has answered one clip of 2 s before. Memory is what the clip adds to that process's peak
 * (VmHWM). Lengths of up to a minute are measured `--rounds` times, and the median counts.
 *
 * For the size, the weights are random, so they tell speed and memory only (bench/growth/synthetic-model.ts), in a process
 * of its own each. `--write` puts the plots into docs/images (or DIR) and the tables into docs/performance.md.
 */
import { execFileSync } from 'node:child_process';
import { createWriteStream, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { readConfig } from '../../src/config/config.ts';
import { JFK, wavHeader } from '../../test/wav.ts';
import { startGatewayProcess } from '../common/gateway.ts';
import { ROOT } from '../common/machine.ts';
import { median } from '../common/numbers.ts';
import { chosen, WRITE } from '../common/options.ts';
import { findPlace, tableOf } from '../common/page.ts';
import { DURATIONS, plot } from '../common/plot.ts';
import { BYTES_A_SECOND, samplesOf } from '../common/samples.ts';
import { transcribe } from '../peers/upload.ts';
import { type ModelRun, SHAPES, type Shape, writeSyntheticModel } from './synthetic-model.ts';

const { values: options } = parseArgs({
  options: {
    'up-to': { type: 'string', default: '10800' },
    models: { type: 'string', default: Object.keys(SHAPES).join() },
    rounds: { type: 'string', default: '3' },
    images: { type: 'string' },
    write: WRITE,
  },
});

const FOLDER = join(ROOT, 'build/bench-growth');
const LENGTHS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 10_800];
const FIELDS = { model: 'multilingual-base', language: 'en' };
const CLIP = { sec: 11, words: 22 };
const PAUSE_SEC = 3;
const rounds = Number(options.rounds);

interface LengthRun {
  sec: number;
  wallSec: number;
  cpuSec: number;
  peakMegabytes: number;
  words: number;
}

interface SizedRun extends ModelRun {
  name: string;
  /** Number of parameters, in millions. */
  parameters: number;
}

const place = options.write ? findPlace('growth') : null;
mkdirSync(FOLDER, { recursive: true });
const sections: string[] = [];
const lost: string[] = [];
const images: [name: string, svg: string][] = [];
reportLengths(await runLengths());
reportModels(await runModels());

const report = sections.join('\n\n');
process.stdout.write(`${report}\n`);
if (lost.length > 0) throw new Error(`Words were lost at ${lost.join(', ')}: those times say nothing`);
const folder = options.images ?? (options.write ? join(ROOT, 'docs/images') : undefined);
if (folder !== undefined) {
  mkdirSync(folder, { recursive: true });
  for (const [name, svg] of images) writeFileSync(join(folder, name), svg);
}
place?.write(report);

async function runLengths(): Promise<LengthRun[]> {
  // The pattern is the clip and a pause; it is repeated up to the length.
  const pattern = Buffer.concat([samplesOf(JFK), Buffer.alloc(PAUSE_SEC * BYTES_A_SECOND)]);
  const runs: LengthRun[] = [];
  for (const sec of LENGTHS.filter((length) => length <= Number(options['up-to']))) {
    const all: LengthRun[] = [];
    for (let round = 0; round < (sec <= 60 ? rounds : 1); round++) all.push(await runLength(pattern, sec));
    const [wallSec, cpuSec, peakMegabytes, words] = (
      ['wallSec', 'cpuSec', 'peakMegabytes', 'words'] as const
    ).map((field) => median(all.map((run) => run[field]))) as [number, number, number, number];
    runs.push({ sec, wallSec, cpuSec, peakMegabytes, words });
    process.stderr.write(`${spoken(sec)}: ${wallSec.toFixed(2)} s, ${words} words\n`);
  }
  return runs;
}

async function runLength(pattern: Buffer, sec: number): Promise<LengthRun> {
  const path = join(FOLDER, `speech-${sec}s.wav`);
  const first = join(FOLDER, 'first.wav');
  try {
    await writeSpeech(first, pattern, 2);
    await writeSpeech(path, pattern, sec);
    await using gateway = await startGatewayProcess();
    await transcribe(gateway.base, first, FIELDS);
    const [peak, cpu, begin] = [gateway.peakMegabytes(), gateway.cpuSec(), performance.now()];
    const { body } = await transcribe(gateway.base, path, FIELDS);
    const wallSec = (performance.now() - begin) / 1000;
    const { text } = JSON.parse(body) as { text: string };
    return {
      sec,
      wallSec,
      cpuSec: gateway.cpuSec() - cpu,
      peakMegabytes: gateway.peakMegabytes() - peak,
      words: text.split(/\s+/).filter((word) => word !== '').length,
    };
  } finally {
    for (const file of [first, path]) rmSync(file, { force: true });
  }
}

async function writeSpeech(path: string, pattern: Buffer, sec: number): Promise<void> {
  async function* parts() {
    yield wavHeader(sec * BYTES_A_SECOND);
    for (let left = sec * BYTES_A_SECOND; left > 0; left -= pattern.length) yield pattern.subarray(0, left);
  }
  await pipeline(parts, createWriteStream(path));
}

async function runModels(): Promise<SizedRun[]> {
  const runs: SizedRun[] = [];
  for (const name of chosen('models', options.models, Object.keys(SHAPES))) {
    const shape = SHAPES[name] as Shape;
    const path = join(FOLDER, `random-${name}.bin`);
    try {
      const parameters = (await writeSyntheticModel(path, shape)) / 1e6;
      const script = join(ROOT, 'bench/growth/synthetic-model.ts');
      const args = ['--import', 'tsx', script, path, options.rounds];
      const run: ModelRun = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', cwd: ROOT }));
      runs.push({ name, parameters, ...run });
      process.stderr.write(`${name}: ${run.transcribeMs.toFixed(0)} ms\n`);
    } finally {
      rmSync(path, { force: true });
    }
  }
  return runs;
}

function reportLengths(runs: LengthRun[]): void {
  lost.push(...runs.filter(({ sec, words }) => words < 0.95 * wordsSaid(sec)).map(({ sec }) => spoken(sec)));
  const table = tableOf(runs, {
    Speech: ({ sec }) => spoken(sec),
    time: ({ wallSec }) => `${wallSec.toFixed(2)} s`,
    'real-time factor': ({ wallSec, sec }) => (wallSec / sec).toFixed(3),
    'processor time': ({ cpuSec }) => `${cpuSec.toFixed(2)} s`,
    'memory added': ({ peakMegabytes }) => `${peakMegabytes.toFixed(0)} MB`,
    'words heard': ({ words }) => String(words),
  });
  sections.push(
    `Against length: 11 s of speech (22 words) and a pause of ${PAUSE_SEC} s, over and over, cut at the length; \`multilingual-base\`, language given, upload included, each in a fresh process that has answered one clip of 2 s. Memory is what the clip adds to the process’s peak; the words are counted to see that none are lost. ${machine()}`,
    table,
    '![Time and memory against the length of the speech](images/growth-length.svg)',
  );
  const series = (name: string, field: 'wallSec' | 'cpuSec' | 'peakMegabytes') => ({
    name,
    points: runs.map((run) => ({ x: run.sec, y: run[field] })),
  });
  const x = { label: 'length of the speech', scale: 'log', ticks: DURATIONS } as const;
  const svg = plot('One request against the length of its speech', [
    {
      title: 'Time',
      x,
      y: { label: 'time', scale: 'log', ticks: DURATIONS },
      series: [series('whole request', 'wallSec'), series('processor time', 'cpuSec')],
      proportional: true,
    },
    {
      title: 'Memory',
      x,
      y: { label: 'MB added to the peak', scale: 'linear' },
      series: [series('peak above the start', 'peakMegabytes')],
    },
  ]);
  images.push(['growth-length.svg', svg]);
}

function reportModels(runs: SizedRun[]): void {
  const table = tableOf(runs, {
    Shape: ({ name }) => name,
    parameters: ({ parameters }) => `${parameters.toFixed(0)} million`,
    load: ({ loadMs }) => `${loadMs.toFixed(0)} ms`,
    '11 s of sound': ({ transcribeMs }) => `${transcribeMs.toFixed(0)} ms`,
    memory: ({ peakMegabytes }) => `${peakMegabytes.toFixed(0)} MB`,
  });
  sections.push(
    `Against the size of the model: q8_0 files of the published shapes whose weights are random, so this tells speed and memory and nothing about words. 640 encoder positions, as 11 s get them, and always 30 tokens, which are garbage. Load from a warm disk cache. ${machine()}`,
    table,
    '![Time and memory against the size of the model](images/growth-models.svg)',
  );
  const series = (name: string, field: 'transcribeMs' | 'loadMs' | 'peakMegabytes', labels = false) => ({
    name,
    points: runs.map((run) => ({ x: run.parameters, y: run[field], ...(labels && { label: run.name }) })),
  });
  const x = { label: 'parameters, million', scale: 'log' } as const;
  const svg = plot('Whisper’s sizes, random weights, q8_0', [
    {
      title: 'Time',
      x,
      y: { label: 'ms', scale: 'log' },
      series: [series('11 s of sound', 'transcribeMs', true), series('load', 'loadMs')],
      proportional: true,
    },
    {
      title: 'Memory',
      x,
      y: { label: 'MB', scale: 'log' },
      series: [series('peak', 'peakMegabytes', true)],
      proportional: true,
    },
  ]);
  images.push(['growth-models.svg', svg]);
}

/** Counts the words of the clips that are there from beginning to end. */
function wordsSaid(sec: number): number {
  return Math.floor((sec + PAUSE_SEC) / (CLIP.sec + PAUSE_SEC)) * CLIP.words;
}

function machine(): string {
  const cpu = cpus()[0]?.model ?? 'an unknown processor';
  return `SVC_THREADS ${readConfig().config.threads} on ${availableParallelism()} cores of ${cpu}.`;
}

function spoken(sec: number): string {
  return DURATIONS.find(({ value }) => value === sec)?.text ?? `${sec} s`;
}
