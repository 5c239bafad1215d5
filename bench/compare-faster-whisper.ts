/**
 * The gateway against faster-whisper (int8, beam 1), and whisper.cpp's server with `--server`, on one clip, on this machine, in one run.
 *
 *   node --import tsx bench/compare-faster-whisper.ts [--model DIR] [--url http://127.0.0.1:8000]
 *
 * Both are warm, they take turns, and who goes first changes from round to round, so that what else the machine
 * does falls on both. The gateway is timed through HTTP, upload included; faster-whisper in its own process, from
 * the path of the file. Give the gateway as many threads as `--threads` (SVC_THREADS).
 */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { wavHeader } from '../test/wav.ts';
import {
  askGateway,
  type Clip,
  type Run,
  SAMPLE,
  SAMPLE_TEXT,
  startGateway,
  startPeer,
  VENV,
} from './compare-faster-whisper.peer.ts';
import { median, samplesOf } from './gateway.ts';
import { startWhisperServer } from './whisper-server.peer.ts';

const { values: options } = parseArgs({
  options: {
    /** A CTranslate2 Whisper directory; base from the package index when absent. */
    model: { type: 'string' },
    /** A running gateway; one is started when absent. */
    url: { type: 'string' },
    'gateway-model': { type: 'string', default: 'multilingual-base' },
    audio: { type: 'string', default: SAMPLE },
    language: { type: 'string', default: 'en' },
    /** The text spoken, or a file that holds it. */
    reference: { type: 'string' },
    rounds: { type: 'string', default: '10' },
    threads: { type: 'string', default: '2' },
    /** faster-whisper with its own voice activity filter: for long recordings with pauses. */
    vad: { type: 'boolean', default: false },
    /** Also whisper.cpp's own server, default build, q8_0. */
    server: { type: 'boolean', default: false },
    /** The audio so often, with a pause of so many seconds between: a long recording. */
    repeat: { type: 'string', default: '1' },
    pause: { type: 'string', default: '0' },
    /** Time the first segment as well: the gateway streams. */
    stream: { type: 'boolean', default: false },
    venv: { type: 'string', default: VENV },
    /** Every single time, for whoever wants to judge the spread. */
    json: { type: 'string' },
  },
});

const rounds = Number(options.rounds);
if (!Number.isInteger(rounds) || rounds < 1 || rounds > 1000) {
  process.stderr.write('--rounds is 1 to 1000\n');
  process.exit(2);
}

const repeat = Number(options.repeat);
const clip: Clip = {
  audio: repeat > 1 ? lengthened(options.audio, repeat, Number(options.pause)) : options.audio,
  language: options.language,
  words: false,
  stream: options.stream,
};
const reference = referenceText();
await using gateway = await startGateway({ url: options.url, threads: Number(options.threads) });
await using peer = await startPeer({
  venv: options.venv,
  model: options.model,
  threads: Number(options.threads),
});
await using server = options.server ? await startWhisperServer(Number(options.threads)) : null;
const contenders: { name: string; run(): Promise<Run>; runs: Run[] }[] = [
  { name: 'voxgate', run: () => askGateway(gateway.url, options['gateway-model'], clip), runs: [] },
  {
    name: `faster-whisper ${peer.versions['faster-whisper']}`,
    run: () => peer.transcribe(clip, { vad: options.vad }),
    runs: [],
  },
];
if (server !== null)
  contenders.push({ name: 'whisper.cpp server', run: () => server.transcribe(clip), runs: [] });

const loadBefore = loadavg()[0] ?? 0;
for (const contender of contenders) await contender.run(); // loads the model, fills the caches
for (let round = 0; round < rounds; round += 1) {
  const order = round % 2 === 0 ? contenders : contenders.toReversed();
  for (const contender of order) contender.runs.push(await contender.run());
}
await report();

function referenceText(): string | null {
  const given = options.reference ?? (options.audio === SAMPLE ? SAMPLE_TEXT : null);
  if (given === null) return null;
  const text = existsSync(given) ? readFileSync(given, 'utf8') : given;
  return Array(repeat).fill(text).join(' ');
}

/** A wav that is removed at the end. */
function lengthened(audio: string, times: number, pauseSec: number): string {
  const once = Buffer.concat([samplesOf(audio), Buffer.alloc(pauseSec * 32_000)]);
  const path = join(tmpdir(), `voxgate-bench-${process.pid}.wav`);
  writeFileSync(path, Buffer.concat([wavHeader(once.length * times), ...Array<Buffer>(times).fill(once)]));
  process.once('exit', () => rmSync(path, { force: true }));
  return path;
}

async function report(): Promise<void> {
  const cpu = cpus();
  const lines = [
    `${options.audio} x ${repeat}, language ${options.language}, ${rounds} rounds in turns, ${options.threads} threads`,
    `${cpu[0]?.model} x ${cpu.length}, load before the run ${loadBefore.toFixed(1)}`,
    '',
    '| | wall time ms, median [min - max] | first segment ms | ratio to voxgate | word error rate |',
    '|---|---|---|---|---|',
  ];
  const own = median(contenders[0]?.runs.map((run) => run.wallMs) ?? []);
  for (const { name, runs } of contenders) {
    const times = runs.map((run) => run.wallMs);
    const [mid, min, max] = [median(times), Math.min(...times), Math.max(...times)].map((ms) =>
      ms.toFixed(0),
    );
    const first = median(runs.map((run) => run.firstMs)).toFixed(0);
    const ratio = (median(times) / own).toFixed(2);
    lines.push(
      `| ${name} | ${mid} [${min} - ${max}] | ${first} | ${ratio} | ${await worstErrorRate(runs)} |`,
    );
  }
  lines.push('');
  if (repeat === 1)
    for (const { name, runs } of contenders)
      for (const text of new Set(runs.map((run) => run.text))) lines.push(`${name}: ${text}`);
  process.stdout.write(`${lines.join('\n')}\n`);
  if (options.json !== undefined)
    writeFileSync(options.json, JSON.stringify({ options, contenders }, null, 2));
}

/** Of all rounds: a fast answer that is wrong once is not a fast answer. */
async function worstErrorRate(runs: Run[]): Promise<string> {
  if (reference === null) return 'no reference';
  const rates = [];
  for (const { text } of runs) rates.push(await peer.wordErrorRate(reference, text, options.language));
  return `${(Math.max(...rates) * 100).toFixed(1)} %`;
}
