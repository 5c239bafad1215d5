/** How a test starts a program of this tree as a process. */
import { join } from 'node:path';

const ROOT = new URL('../', import.meta.url).pathname;
/** Where `npm test` has bundled the programs (scripts/test.mjs); a copy of the tree does not use those of another one. */
const { VOXGATE_TEST_BUNDLES: bundles } = process.env;
const isBundled = bundles?.startsWith(ROOT) ?? false;

/** @returns the arguments of Node that run a source, given from the root */
export function program(source: string): string[] {
  if (isBundled) return ['--enable-source-maps', join(bundles ?? '', source.replace(/\.ts$/, '.mjs'))];
  return ['--import', 'tsx', join(ROOT, source)];
}
