/** What a peer said of a sound, kept as lines of JSON below build/, and the key that it is found by. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { HEADER_BYTES } from '../clips/clips.ts';

/** The key of what a peer says of the samples of a wav. `about` is all else that decides about it. */
export function keyOfSamples(peer: string, audio: string, ...about: unknown[]): string {
  const samples = createHash('sha256').update(readFileSync(audio).subarray(HEADER_BYTES)).digest('hex');
  return createHash('sha256')
    .update(JSON.stringify([peer, samples, ...about]))
    .digest('hex');
}

/** The lines of a file by their keys; none where there is no file. */
export function keptIn<T extends { key: string }>(file: string): Map<string, T> {
  if (!existsSync(file)) return new Map();
  // A run that was stopped may have left half a line.
  const lines = readFileSync(file, 'utf8').split('\n');
  const all = lines.flatMap((line) => (line.endsWith('}') ? [JSON.parse(line) as T] : []));
  return new Map(all.map((kept) => [kept.key, kept]));
}
