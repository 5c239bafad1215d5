/** Good files of every container, cut at many places and damaged at random ones. */
import { readFileSync } from 'node:fs';
import { FFMPEG_FORMATS, makeTones, OWN_FORMATS } from '../audio-fixtures.ts';
import { ANY, type BadFile, join, REFUSED, randomBytes } from './file.ts';

/** Where each file is cut: within its header, and in percent of the file. */
const HEADER_BYTES = [4, 12, 30];
const PERCENTS = [10, 50, 99];

/** Without it, some files hold random numbers. */
const SAME_EVERY_TIME = ['-fflags', '+bitexact'];

/** The good files of 2 s, by name; all have been made when this module is loaded. */
const GOOD: ReadonlyMap<string, Buffer> = new Map([
  ...[...makeTones([...OWN_FORMATS, ...FFMPEG_FORMATS], ...SAME_EVERY_TIME)].map(
    ([name, path]) => [name, readFileSync(path)] as const,
  ),
  ['a.amr', amr(100)],
]);

export function good(name: string): Buffer {
  const file = GOOD.get(name);
  if (file === undefined) throw new Error(`There is no ${name}`);
  return file;
}

/** AMR of frames at 12.2 kbit/s with random parameters, which is loud noise (RFC 4867, section 5). */
function amr(frames: number): Buffer {
  const frame = (seed: number) => [0x3c, ...randomBytes(seed, 31)];
  return join('#!AMR\n', ...Array.from({ length: frames }, (_, seed) => frame(seed)));
}

export function cutFiles(): BadFile[] {
  return [...GOOD].flatMap(([name, whole]) => {
    const places = [
      ...HEADER_BYTES.map((bytes) => ({ where: `${bytes} bytes`, length: bytes })),
      ...PERCENTS.map((percent) => ({
        where: `${percent} %`,
        length: Math.floor((whole.length * percent) / 100),
      })),
    ];
    return places.map(({ where, length }) => ({
      name: `${name} cut after ${where}`,
      bytes: whole.subarray(0, length),
      expected: length <= 12 ? REFUSED : ANY,
      maxSec: 4,
    }));
  });
}

/** Files with random bytes in random places, a few in the header and many in the rest. */
export function damagedFiles(perFormat: number): BadFile[] {
  return [...GOOD].flatMap(([name, whole], format) =>
    Array.from({ length: perFormat }, (_, i) => {
      const seed = 1 + format * perFormat + i;
      const random = randomBytes(seed, 4096);
      const bytes = Buffer.from(whole);
      for (let hit = 0; hit < 40; hit += 1) {
        const within = hit < 6 ? Math.min(200, bytes.length) : bytes.length;
        bytes[random.readUInt32LE(8 * hit) % within] = random[8 * hit + 4] ?? 0;
      }
      return { name: `${name} with damage ${seed}`, bytes, expected: ANY };
    }),
  );
}
