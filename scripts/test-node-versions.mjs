/**
 * `node scripts/test-node-versions.mjs [--spread PATH…]` runs tests on every version of Node that package.json promises,
 * but for the one that runs this: those of the addon and of HTTP, or the files whose path contains a word. With --spread those
 * run on each version, and every other file of the addon and of HTTP runs on one of them. The addon is the same one, as
 * Node-API has it, and the versions come from the package index.
 */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT, run, testFiles } from './tools.mjs';

const FOLDERS = ['test/native/', 'test/http/'];
const VERSIONS = ['20.20.2', '22.23.3', '24.21.0'].filter(
  (version) => version.split('.')[0] !== process.versions.node.split('.')[0],
);
const { values: options, positionals: words } = parseArgs({
  options: { spread: { type: 'boolean', default: false } },
  allowPositionals: true,
});

/** @param index the place of the version among those that are tested */
function testsFor(index) {
  if (!options.spread) return words.length > 0 ? words : FOLDERS;
  const others = testFiles()
    .filter((path) => FOLDERS.some((folder) => path.startsWith(folder)))
    .filter((path) => !words.some((word) => path.includes(word)));
  return [...words, ...others.filter((_, i) => i % VERSIONS.length === index)];
}

for (const [index, version] of VERSIONS.entries()) {
  const folder = join(ROOT, 'build', `node-${version}`);
  const name = `node-${process.platform}-${process.arch}`;
  const bin = join(folder, 'node_modules', name, 'bin');
  if (!existsSync(bin)) {
    const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
    run(`fetch Node ${version}`, 'npm', ['install', `--prefix=${folder}`, ...flags, `${name}@${version}`]);
  }
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  run(`tests on Node ${version}`, join(bin, 'node'), ['scripts/test.mjs', ...testsFor(index)], { env });
}
