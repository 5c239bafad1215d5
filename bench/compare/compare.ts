/**
 * Compares the gateway with its peers on the same clips, on this machine, in one run.
 *
 *   npm run bench [-- --only commands,60s --peers voxgate,faster-whisper --rounds 5 --write]
 *   npm run bench -- --audio FILE --reference TEXT
 *   npm run bench -- --cpu avx2   (after npm run build -- --cpu=all)
 *   npm run bench -- --device cuda   (after npm run build -- cuda)
 *
 * All are warm and take turns, and the order is reversed from clip to clip, so that other load of the machine falls
 * on all. voxgate and whisper.cpp's server are timed through HTTP, upload included; the others in their own process,
 * from the path of the file. Missing peers and clips are installed or built below build/ at the first run.
 */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { JFK } from '../../test/wav.ts';
import { startErrorRates } from '../accuracy/error-rate.ts';
import { CLASS_IDS, clipClasses, fileClass } from '../clips/clip-classes.ts';
import { fileClip } from '../clips/clips.ts';
import { chosen, GATEWAY_MODEL, refuse, THREADS, URL_OPTION, WRITE } from '../common/options.ts';
import { findPlace } from '../common/page.ts';
import { canUseGpu, PEERS } from '../peers/all.ts';
import type { StartPeer } from '../peers/peer.ts';
import { CPU_LEVELS, canBeLimited, limitedTo } from './cpu-level.ts';
import { measure } from './measurement.ts';
import { type ClassResult, classTable, describeRun } from './report.ts';

const { values: options, tokens } = parseArgs({
  tokens: true,
  options: {
    /** Names classes of clips, separated by commas. */
    only: { type: 'string', default: CLASS_IDS.join() },
    peers: { type: 'string', default: Object.keys(PEERS).join() },
    /** Rounds of every class; when absent 5, but 3 for 6 min and 1 for 60 min. */
    rounds: { type: 'string' },
    threads: THREADS,
    /** Holds voxgate and faster-whisper to these instructions, and leaves the others out. */
    cpu: { type: 'string' },
    /** Where the models run. On a GPU those peers are left out that cannot use one. */
    device: { type: 'string', default: 'cpu' },
    /** Measures this file instead of the classes. */
    audio: { type: 'string' },
    /** Gives the text of that file, or names a file that holds it. */
    reference: { type: 'string' },
    /** Language of that file. `auto` asks the peers to detect it. */
    language: { type: 'string', default: 'en' },
    /** Names a CTranslate2 Whisper directory; base from the package index when absent. */
    model: { type: 'string' },
    'gateway-model': GATEWAY_MODEL,
    url: URL_OPTION,
    write: WRITE,
    /** Writes every single time and text to this file, so that the spread can be judged. */
    json: { type: 'string' },
  },
});

const level = options.cpu === undefined ? undefined : chosen('cpu', options.cpu, CPU_LEVELS)[0];
if (level !== undefined) Object.assign(process.env, limitedTo(level));
const [device = 'cpu'] = chosen('device', options.device, ['cpu', 'cuda'] as const);
let peers = chosen('peers', options.peers, Object.keys(PEERS))
  .filter((id) => level === undefined || canBeLimited(id))
  .filter((id) => device === 'cpu' || canUseGpu(id))
  .map((id): [string, StartPeer] => [id, PEERS[id] as StartPeer]);
const threads = count('threads', options.threads);
const rounds = options.rounds === undefined ? undefined : count('rounds', options.rounds);
const classes =
  options.audio === undefined
    ? clipClasses(chosen('only', options.only, CLASS_IDS), rounds)
    : [fileClass(options.audio, options.reference, options.language, rounds)];
if (classes.length === 0) refuse('there are no clips for these classes');
const places = new Map(
  options.write ? classes.map(({ id }) => [id, findPlace(place(id), 'bench/results/peers.md')]) : [],
);

const peerOptions = {
  threads,
  device,
  model: options.model,
  gatewayModel: options['gateway-model'],
  url: options.url,
};
const warmUp = fileClip(JFK, null);
await using rates = await startErrorRates().catch((error: Error) => {
  process.stderr.write(`Without word error rates: ${error.message}\n`);
  return null;
});
const results: ClassResult[] = [];
for (const clipClass of classes) {
  const load = loadavg()[0] ?? 0;
  const result = { clipClass, outcomes: await measure(clipClass, peers, peerOptions, warmUp) };
  results.push(result);
  peers = peers.filter(([id]) =>
    result.outcomes.some((outcome) => outcome.id === id && outcome.version !== ''),
  );
  const report = `${await classTable(result, rates)}\n\n${describeRun(result, { threads, load, level, device })}`;
  process.stdout.write(`${report}\n\n${commandLine(clipClass.id)}\n\n`);
  places.get(clipClass.id)?.write(report);
  if (options.audio !== undefined) printTexts(result);
  if (options.json !== undefined) writeFileSync(options.json, JSON.stringify(results, null, 2));
}

function place(id: string): string {
  return [id, ...(level === undefined ? [] : [level]), ...(device === 'cpu' ? [] : [device])].join('-');
}

function printTexts({ outcomes }: ClassResult): void {
  for (const { name, runs } of outcomes)
    for (const text of new Set(runs.map(({ run }) => run.text))) process.stdout.write(`${name}: ${text}\n`);
}

function count(option: string, given: string): number {
  const value = Number(given);
  return Number.isInteger(value) && value >= 1 && value <= 1000 ? value : refuse(`--${option} is 1 to 1000`);
}

/** Gives, for docs/benchmarks.md, the command that repeats one class elsewhere, without this machine's own paths. */
function commandLine(id: string): string {
  const local = ['audio', 'reference', 'model', 'url'];
  const words = tokens.flatMap((token) => {
    if (token.kind !== 'option' || ['only', 'write', 'json'].includes(token.name)) return [];
    if (token.value === undefined) return [token.rawName];
    return [token.rawName, local.includes(token.name) ? token.name.toUpperCase() : token.value];
  });
  const only = options.audio === undefined ? ['--only', id] : [];
  return ['npm run bench --', ...only, ...words].join(' ');
}
