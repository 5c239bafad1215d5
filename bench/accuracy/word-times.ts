/**
 * Puts the word times of the gateway beside those of faster-whisper on the same clip.
 *
 *   npm run bench -- words [--list]
 *
 * Neither is the truth: the bench tells how far the two are apart. Words that only one of them recognized are
 * counted, not compared. With --list every pair is printed.
 */
import { parseArgs } from 'node:util';
import { JFK } from '../../test/wav.ts';
import { fileClip } from '../clips/clips.ts';
import { median } from '../common/numbers.ts';
import { startFasterWhisper } from '../peers/faster-whisper.ts';
import type { TimedWord } from '../peers/peer.ts';
import { startVoxgate } from '../peers/voxgate.ts';

const { values: options } = parseArgs({ options: { list: { type: 'boolean', default: false } } });
const peerOptions = { threads: 2, gatewayModel: 'multilingual-base' };
const task = { audio: fileClip(JFK, null).audio, language: 'en', words: true };
await using gateway = await startVoxgate(peerOptions);
await using peer = await startFasterWhisper(peerOptions);
const own = (await gateway.transcribe(task)).words ?? [];
const other = (await peer.transcribe(task)).words ?? [];
const pairs = alignWords(own, other);

if (options.list) {
  for (const [a, b] of pairs) {
    const times = [a.start, b.start, a.end, b.end].map((sec) => sec.toFixed(2).padStart(7)).join('');
    process.stdout.write(`${a.word.padEnd(16)} start ${times.slice(0, 14)}   end ${times.slice(14)}\n`);
  }
}
process.stdout.write(
  `${own.length} words of voxgate, ${other.length} of faster-whisper, ${pairs.length} in both\n`,
);
process.stdout.write('| difference, ms | median | largest |\n|---|---|---|\n');
for (const edge of ['start', 'end'] as const) {
  const apart = pairs.map(([a, b]) => Math.abs(a[edge] - b[edge]) * 1000);
  const largest = apart.length === 0 ? Number.NaN : Math.max(...apart);
  process.stdout.write(`| ${edge} | ${median(apart).toFixed(0)} | ${largest.toFixed(0)} |\n`);
}
if (pairs.length === 0) process.exitCode = 1;

/** Finds the longest common subsequence of the words, compared without case and punctuation. */
function alignWords(left: TimedWord[], right: TimedWord[]): [TimedWord, TimedWord][] {
  const plain = (word: TimedWord) => word.word.toLowerCase().replace(/[^\p{L}\p{N}']/gu, '');
  const [a, b] = [left.map(plain), right.map(plain)];
  const common = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  const at = (i: number, j: number) => common[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i -= 1) {
    const row = common[i];
    for (let j = b.length - 1; j >= 0 && row; j -= 1) {
      row[j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const pairs: [TimedWord, TimedWord][] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    const [x, y] = [left[i], right[j]];
    if (a[i] === b[j] && x && y) {
      pairs.push([x, y]);
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) i += 1;
    else j += 1;
  }
  return pairs;
}
