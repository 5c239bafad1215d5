/**
 * Keeps what peers answered as lines of JSON below build/. It never changes for the same version, options, weights and
 * samples, so a run that is after words or turns, not after times, need not wait for it again.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ROOT } from '../common/machine.ts';
import { wavSamples } from '../common/samples.ts';
import type { SpeakerSpan } from '../speakers/conversations/reference.ts';
import type { StartDiarizer } from './diarizers.ts';
import type { Run, StartPeer, Task } from './peer.ts';

interface CacheOptions {
  /** Takes the answers of earlier runs, too; they have NaN for the times. */
  read: boolean;
  folder?: string;
}

/** Writes down every text of the peer. */
export function withCachedTexts(id: string, start: StartPeer, cache: CacheOptions): StartPeer {
  return async (options) => {
    const peer = await start(options);
    const answer = answerCache<Pick<Run, 'text' | 'language'>>('bench-texts', id, cache);
    const weights = options.model === undefined ? 'base' : weightsOf(options.model);
    const transcribe = async (task: Task): Promise<Run> => {
      const { audio, language, vad = false, words = false } = task;
      // Times and streams are free for the peers whose texts are cached.
      const key = keyOf(`${peer.name} ${peer.version} ${weights}`, audio, language, vad, words);
      const ask = () => peer.transcribe(task);
      const run = await answer(key, ask, ({ text, language }: Run) => ({ text, language }));
      return { wallMs: Number.NaN, firstMs: Number.NaN, ...run };
    };
    return { ...peer, transcribe };
  };
}

/** Writes down the turns of every file. */
export function withCachedTurns(id: string, start: StartDiarizer, cache: CacheOptions): StartDiarizer {
  return async (options) => {
    const peer = await start(options);
    const answer = answerCache<{ turns: SpeakerSpan[] }>('bench-turns', id, cache);
    const diarize = async (audio: string) => {
      const key = keyOf(`${peer.name} ${peer.version}`, audio);
      const diarized = await answer(
        key,
        () => peer.diarize(audio),
        ({ turns }) => ({ turns }),
      );
      return { wallMs: Number.NaN, cpuSec: Number.NaN, ...diarized };
    };
    return { ...peer, diarize };
  };
}

function answerCache<Part extends object>(name: string, id: string, options: CacheOptions) {
  const { read, folder = join(ROOT, 'build', name) } = options;
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${id}.jsonl`);
  const known = answersIn<Part>(file);
  /** @param part what is kept of an answer */
  return async <Answer extends Part>(
    key: string,
    ask: () => Promise<Answer>,
    part: (answer: Answer) => { [Name in keyof Part]: Part[Name] | undefined },
  ): Promise<Answer | Part> => {
    const earlier = known.get(key);
    if (read && earlier !== undefined) return earlier;
    const answer = await ask();
    if (earlier !== undefined) return answer;
    const line = JSON.stringify({ key, ...part(answer) });
    appendFileSync(file, `${line}\n`);
    known.set(...answerIn<Part>(line));
    return answer;
  };
}

function answersIn<Part>(file: string): Map<string, Part> {
  if (!existsSync(file)) return new Map();
  // A run that was stopped may have left half a line.
  const lines = readFileSync(file, 'utf8').split('\n');
  return new Map(lines.filter((line) => line.endsWith('}')).map((line) => answerIn(line)));
}

function answerIn<Part>(line: string): [key: string, answer: Part] {
  const { key, ...answer } = JSON.parse(line);
  return [key, answer];
}

/** The key of what a peer says of the samples of a wav. `about` is all else that decides about it. */
function keyOf(peer: string, audio: string, ...about: unknown[]): string {
  return sha256(JSON.stringify([peer, sha256(wavSamples(audio)), ...about]));
}

/** Names a checkpoint by its content, because another one may come under the name. */
function weightsOf(folder: string): string {
  return `${basename(folder)} ${sha256(readFileSync(join(folder, 'model.bin')))}`;
}

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
