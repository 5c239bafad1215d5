/** Reads the limits of the addon from its sources: the constants whose names begin with `kMax` or `kMin`. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { runInNewContext } from 'node:vm';

export interface NativeLimit {
  /** The file without its ending, a dot, and the constant; of a duration, `Ms` follows. */
  name: string;
  value: number;
}

/** The sources of the addon, without those of its tests and fuzzers. */
export function nativeSources(root: string): { path: string; text: string }[] {
  return readdirSync(join(root, 'native'), { recursive: true })
    .map((path) => join('native', String(path)))
    .filter((path) => /\.(cpp|h)$/.test(path) && !/^native\/(test|fuzz)\//.test(path))
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));
}

export function nativeLimits(root: string): NativeLimit[] {
  const sources = nativeSources(root);
  const all = sources.map(({ text }) => text).join('\n');
  const [, sampleRate = ''] = /constexpr int kSampleRate = (\d+);/.exec(all) ?? [];
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/constexpr ([\w:]+)\s+(k(?:Max|Min)\w+)(?:\s*=\s*([^;]+)|\{(\d+)\});/g)].map(
      ([, type = '', name = '', assigned = '', braced = '']) => ({
        name: `${basename(path).replace(/\.\w+$/, '')}.${name}${type.endsWith('milliseconds') ? 'Ms' : ''}`,
        value: evaluated((assigned || braced).replaceAll('kSampleRate', sampleRate)),
      }),
    ),
  );
}

/** Computes an expression of whole numbers, such as `size_t{32} << 20`. BigInt shifts farther than 31 bits. */
function evaluated(expression: string): number {
  const plain = expression.replace(/\b(?:size_t|uint64_t)\{(\d+)\}/g, '$1');
  return Number(runInNewContext(plain.replace(/\d+/g, '$&n')));
}
