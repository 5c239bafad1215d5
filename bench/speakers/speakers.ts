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
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BYTES_A_SECOND, HEADER_BYTES } from '../clips/clips.ts';
import { findPlace } from '../common/page.ts';
import type { Diarizer, StartDiarizer } from '../peers/diarizer.ts';
import { DIARIZERS } from '../peers/diarizers.ts';
import type { TimedWord } from '../peers/peer.ts';
import { ensureSpeakersVenv, labeledCall, SPEAKERS_VENV } from '../peers/speakers-venv.ts';
import { labeledWords } from './conversations/labeling.ts';
import { CONVERSATION_FOLDER, conversationFiles } from './conversations/rendering.ts';
import { CLASSES, conversations } from './conversations/set.ts';
import { startDiarizationScores } from './diarization-error.ts';
import { errorTable, type FileResult, partsTable } from './report.ts';
import { keepingTurns } from './turn-cache.ts';

/** What the gateway says changes with every build, so that its turns are not kept. */
const OWN = ['voxgate', 'voxgate-alone'];

const { values: options } = parseArgs({
  options: {
    /** Names classes of the synthetic set, and `call`; all when absent. */
    classes: { type: 'string', default: [...CLASSES, 'call'].join() },
    peers: { type: 'string', default: Object.keys(DIARIZERS).join() },
    /** Takes the half of the set on which settings may be tuned, not the one that judges them. */
    tuning: { type: 'boolean', default: false },
    /** Takes the turns of peers that an earlier run wrote down; such turns have no times. */
    cached: { type: 'boolean', default: false },
    /** Makes the files of both halves, and asks no program. */
    'only-files': { type: 'boolean', default: false },
    threads: { type: 'string', default: '2' },
    'gateway-model': { type: 'string', default: 'multilingual-base' },
    /** Address of a running gateway; one is started when absent. */
    url: { type: 'string' },
    venv: { type: 'string', default: SPEAKERS_VENV },
    /** Writes the tables into their place in bench/results/speakers.md. */
    write: { type: 'boolean', default: false },
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

const classes = options.classes.split(',');
const files = filesOf(options['only-files'] ? [true, false] : [options.tuning]);
if (!options['only-files']) await compare();

async function compare(): Promise<void> {
  const place = options.write ? findPlace('speakers', 'bench/results/speakers.md') : null;
  const load = loadavg()[0] ?? 0;
  const threads = Number(options.threads);
  const { results, peaks, versions } = await measure(threads);
  const machine = `${cpus()[0]?.model.trim()}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 20)} MB`;
  const report = [
    errorTable(results),
    partsTable(results, peaks),
    `${machine}, load before ${load.toFixed(1)}; ${threads} threads each. ${versions.join('; ')}.`,
  ].join('\n\n');
  process.stdout.write(`${report}\n`);
  place?.write(report);
  mkdirSync(CONVERSATION_FOLDER, { recursive: true });
  writeFileSync(join(CONVERSATION_FOLDER, 'scores.json'), `${JSON.stringify(results, null, 1)}\n`);
}

async function measure(threads: number) {
  const contenders: [string, Diarizer][] = [];
  const results: FileResult[] = [];
  try {
    for (const id of options.peers.split(',')) {
      const start = DIARIZERS[id] as StartDiarizer;
      const kept = OWN.includes(id) ? start : keepingTurns(id, start, { read: options.cached });
      contenders.push([
        id,
        await kept({ threads, venv: options.venv, gatewayModel: options['gateway-model'], url: options.url }),
      ]);
    }
    await using scores = await startDiarizationScores(ensureSpeakersVenv(options.venv));
    for (const [turn, file] of files.entries()) {
      let words: TimedWord[] | undefined;
      // The gateway goes first, because the others have their words from it; the rest change places.
      const [own, others] = [true, false].map((is) => contenders.filter(([id]) => OWN.includes(id) === is));
      for (const [, peer] of [
        ...(own ?? []),
        ...(turn % 2 === 0 ? (others ?? []) : (others ?? []).toReversed()),
      ]) {
        const { turns, wallMs, cpuSec, words: heard } = await peer.diarize(file.audio);
        words ??= heard;
        const labeled = words === undefined ? null : labeledWords(words, turns);
        const errors = await scores.score({ ...file, turns, words: labeled });
        results.push({
          peer: peer.name,
          kind: file.kind,
          file: file.name,
          seconds: file.seconds,
          errors,
          wallMs,
          cpuSec,
        });
      }
      process.stderr.write(`${turn + 1} of ${files.length}: ${file.name}\n`);
    }
    const peaks = new Map(contenders.map(([, peer]) => [peer.name, peer.peakMegabytes()]));
    return { results, peaks, versions: contenders.map(([, { name, version }]) => `${name}: ${version}`) };
  } finally {
    for (const [, peer] of contenders) await peer[Symbol.asyncDispose]();
  }
}

function filesOf(halves: boolean[]): Heard[] {
  const made = conversations()
    .filter(({ tuning, conversationClass }) => halves.includes(tuning) && classes.includes(conversationClass))
    .flatMap((conversation) => {
      const paths = conversationFiles(conversation);
      if (paths === null) return [];
      return [
        {
          ...paths,
          name: conversation.name,
          kind: conversation.conversationClass,
          seconds: secondsOf(paths.audio),
        },
      ];
    });
  if (!classes.includes('call') || options['only-files']) return made;
  const call = labeledCall(options.venv);
  return [...made, { ...call, name: 'call', kind: 'call', seconds: secondsOf(call.audio) }];
}

function secondsOf(audio: string): number {
  return (statSync(audio).size - HEADER_BYTES) / BYTES_A_SECOND;
}
