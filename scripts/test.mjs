/**
 * `npm test` runs every test, or those whose path contains one of the arguments. Each file has a process of its own,
 * so that a crash of the addon fails one file. Files that measure times or memory, or transcribe with all cores, run
 * alone; the rest share the cores.
 * The slow tests of `test/deep` run only when an argument names them, as `npm run check:deep` does.
 */
import { spawnSync } from 'node:child_process';
import { ROOT, testFiles } from './tools.mjs';

const wanted = process.argv.slice(2);
const files = testFiles().filter((path) =>
  wanted.length === 0 ? !path.startsWith('test/deep/') : wanted.some((w) => path.includes(w)),
);
if (files.length === 0) {
  process.stderr.write(`No test file matches ${wanted.join(' ')}\n`);
  process.exit(1);
}

const ALONE = /^test\/(deep|model|native)\/|^test\/http\/(proxies|small-requests)\./;
const SHARING =
  /^test\/deep\/(benches|clients|containers|cuda|documents|generated-sounds|macos|models-import|musl|package|package-arm64|recipes|recorded-requests|request-fuzz|schedules|site|vulkan)\./;
const alone = files.filter((path) => ALONE.test(path) && !SHARING.test(path));
const together = files.filter((path) => !alone.includes(path));
// The longest file begins first, so that a core does not wait for it at the end.
together.sort((a, b) => Number(b.includes('schedules')) - Number(a.includes('schedules')));
let failed = false;
for (const [group, concurrency] of [
  [together, 2],
  [alone, 1],
]) {
  if (group.length === 0) continue;
  const args = [
    '--import',
    'tsx',
    '--test',
    `--test-concurrency=${concurrency}`,
    '--test-reporter=spec',
    ...group,
  ];
  failed = spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' }).status !== 0 || failed;
}
process.exit(failed ? 1 : 0);
