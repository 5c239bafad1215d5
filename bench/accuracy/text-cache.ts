/**
 * Keeps what peers heard, below build/bench-texts. The answer of a peer never changes for the same version, options,
 * weights and samples, so a run that is after words, not after times, need not wait for it again.
 */
import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { keptIn, keyOfSamples } from '../common/kept-lines.ts';
import { ROOT, type Run, type StartPeer, type Task } from '../peers/peer.ts';

const FOLDER = join(ROOT, 'build/bench-texts');

interface Kept {
  key: string;
  text: string;
  language?: string;
}

/**
 * Writes down every text of the peer.
 * @param read takes texts that are known, too; their runs have NaN for the times
 */
export function keepingTexts(
  id: string,
  start: StartPeer,
  { read, folder = FOLDER }: { read: boolean; folder?: string },
): StartPeer {
  return async (options) => {
    const peer = await start(options);
    mkdirSync(folder, { recursive: true });
    const file = join(folder, `${id}.jsonl`);
    const known = keptIn<Kept>(file);
    const weights = options.model === undefined ? 'base' : weightsOf(options.model);
    const transcribe = async (task: Task): Promise<Run> => {
      const key = keyOf(`${peer.name} ${peer.version} ${weights}`, task);
      const kept = known.get(key);
      if (read && kept !== undefined) {
        const { key: _, ...heard } = kept;
        return { wallMs: Number.NaN, firstMs: Number.NaN, ...heard };
      }
      const run = await peer.transcribe(task);
      if (kept === undefined) {
        const { text, language } = run;
        const heard: Kept = { key, text, ...(language === undefined ? {} : { language }) };
        known.set(key, heard);
        appendFileSync(file, `${JSON.stringify(heard)}\n`);
      }
      return run;
    };
    return { ...peer, transcribe };
  };
}

/** Names what decides about the words: times and streams are free for the peers that are kept. */
function keyOf(peer: string, { audio, language, vad = false, words = false }: Task): string {
  return keyOfSamples(peer, audio, language, vad, words);
}

/** Names a checkpoint by its content, because another one may come under the name. */
function weightsOf(folder: string): string {
  const digest = createHash('sha256')
    .update(readFileSync(join(folder, 'model.bin')))
    .digest('hex');
  return `${basename(folder)} ${digest}`;
}
