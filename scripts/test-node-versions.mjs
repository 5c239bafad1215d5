/**
 * `npm run test:node-versions [-- PATH…]` runs tests on every version of Node that package.json promises, but for the one
 * that runs this: those of the addon and of HTTP, or the files whose path contains a word. The addon is the same one, as
 * Node-API has it, and the versions come from the package index.
 */
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { ROOT, run } from './tools.mjs';

const VERSIONS = ['20.20.2', '22.23.3', '24.21.0'];
const words = process.argv.slice(2);
const tests = words.length > 0 ? words : ['test/native/', 'test/http/'];

for (const version of VERSIONS) {
  const [major] = version.split('.');
  if (process.versions.node.startsWith(`${major}.`)) continue;
  const folder = join(ROOT, 'build', `node-${version}`);
  const name = `node-${process.platform}-${process.arch}`;
  const bin = join(folder, 'node_modules', name, 'bin');
  if (!existsSync(bin)) {
    const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
    run(`fetch Node ${version}`, 'npm', ['install', `--prefix=${folder}`, ...flags, `${name}@${version}`]);
  }
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
  run(`tests on Node ${version}`, join(bin, 'node'), ['scripts/test.mjs', ...tests], { env });
}
