/**
 * Measures how well the gateway and its peers tell who speaks when: on a synthetic set of conversations and short
 * meetings, and on a telephone call with known turns.
 *
 *   npm run bench -- speakers [--classes noise,meeting --peers voxgate,pyannote --tuning --cached --write]
 *   npm run bench -- speakers --only-files
 *
 * All peers hear the same files in turns. Settings are tuned with --tuning, which takes the other half of the set. With
 * --cached the turns of peers are taken from earlier runs. Every score stands in build/conversations/scores.json.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { wavSeconds } from '../clips/clips.ts';
import { describeMachine } from '../common/machine.ts';
import { CACHED, chosen, GATEWAY_MODEL, THREADS, TUNING, URL_OPTION, WRITE } from '../common/options.ts';
import { findPlace } from '../common/page.ts';
import { withCachedTurns } from '../peers/answer-cache.ts';
import { DIARIZERS, type Diarizer, type StartDiarizer } from '../peers/diarizers.ts';
import type { TimedWord } from '../peers/peer.ts';
import { labeledCall } from '../peers/python.ts';
import { labeledWords } from './conversations/reference.ts';
import { CONVERSATION_FOLDER, conversationFiles } from './conversations/rendering.ts';
import { CLASSES, conversations } from './conversations/set.ts';
import { startDiarizationScores } from './diarization-error.ts';
import { errorTable, type FileResult, partsTable } from './report.ts';

/** What the gateway says changes with every build, so that its turns are not kept. */
const OWN = ['voxgate', 'voxgate-alone'];

const KINDS = [...CLASSES, 'call'];

const { values: options } = parseArgs({
  options: {
    /** Names classes of the synthetic set, and `call`; all when absent. */
    classes: { type: 'string', default: KINDS.join() },
    peers: { type: 'string', default: Object.keys(DIARIZERS).join() },
    tuning: TUNING,
    cached: CACHED,
    /** Makes the files of both halves, and asks no program. */
    'only-files': { type: 'boolean', default: false },
    threads: THREADS,
    'gateway-model': GATEWAY_MODEL,
    url: URL_OPTION,
    write: WRITE,
  },
});

interface Heard {
  kind: string;
  name: string;
  audio: string;
  seconds: number;
  rttm: string;
  stm: string | null;
}

const classes = chosen('classes', options.classes, KINDS);
const files = filesOf(options['only-files'] ? [true, false] : [options.tuning]);
if (!options['only-files']) await compare();

async function compare(): Promise<void> {
  const place = options.write ? findPlace('speakers', 'bench/results/speakers.md') : null;
  const load = loadavg()[0] ?? 0;
  const { results, peaks, versions } = await measure();
  const report = [
    errorTable(results),
    partsTable(results, peaks),
    `${describeMachine()}, load before ${load.toFixed(1)}; ${options.threads} threads each. ${versions.join('; ')}.`,
  ].join('\n\n');
  process.stdout.write(`${report}\n`);
  place?.write(report);
  mkdirSync(CONVERSATION_FOLDER, { recursive: true });
  writeFileSync(join(CONVERSATION_FOLDER, 'scores.json'), `${JSON.stringify(results, null, 1)}\n`);
}

async function measure() {
  const peers: Diarizer[] = [];
  const results: FileResult[] = [];
  try {
    // The gateway goes first, because the others have their words from it; the rest change places.
    const [own, others]: [Diarizer[], Diarizer[]] = [[], []];
    for (const id of chosen('peers', options.peers, Object.keys(DIARIZERS))) {
      const peer = await start(id);
      peers.push(peer);
      (OWN.includes(id) ? own : others).push(peer);
    }
    await using scores = await startDiarizationScores();
    for (const [turn, file] of files.entries()) {
      let words: TimedWord[] | undefined;
      for (const peer of [...own, ...(turn % 2 === 0 ? others : others.toReversed())]) {
        const { turns, wallMs, cpuSec, words: heard } = await peer.diarize(file.audio);
        words ??= heard;
        const labeled = words === undefined ? null : labeledWords(words, turns);
        const errors = await scores.score({ ...file, turns, words: labeled });
        const { kind, name, seconds } = file;
        results.push({ peer: peer.name, kind, file: name, seconds, errors, wallMs, cpuSec });
      }
      process.stderr.write(`${turn + 1} of ${files.length}: ${file.name}\n`);
    }
    const peaks = new Map(peers.map((peer) => [peer.name, peer.peakMegabytes()]));
    return { results, peaks, versions: peers.map(({ name, version }) => `${name}: ${version}`) };
  } finally {
    for (const peer of peers) await peer[Symbol.asyncDispose]();
  }
}

function start(id: string): Promise<Diarizer> {
  const startPeer = DIARIZERS[id] as StartDiarizer;
  const keeping = OWN.includes(id) ? startPeer : withCachedTurns(id, startPeer, { read: options.cached });
  return keeping({
    threads: Number(options.threads),
    gatewayModel: options['gateway-model'],
    url: options.url,
  });
}

function filesOf(halves: boolean[]): Heard[] {
  const made = conversations()
    .filter(({ tuning, conversationClass }) => halves.includes(tuning) && classes.includes(conversationClass))
    .flatMap((conversation) => {
      const paths = conversationFiles(conversation);
      return paths === null ? [] : [heard(conversation.name, conversation.conversationClass, paths)];
    });
  return classes.includes('call') && !options['only-files']
    ? [...made, heard('call', 'call', labeledCall())]
    : made;
}

function heard(name: string, kind: string, paths: Pick<Heard, 'audio' | 'rttm' | 'stm'>): Heard {
  return { ...paths, name, kind, seconds: wavSeconds(paths.audio) };
}
