/**
 * `npm test` runs every test, or those whose path contains one of the arguments. Each file has a process of its own,
 * so that a crash of the addon fails one file. Files that measure times or memory, or transcribe with all cores, run
 * alone; the rest share the cores.
 * The slow tests of `test/deep` run only when an argument names them, as `npm run check:deep` does.
 */
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
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
await runFiles(together, 2);
await runFiles(alone, 1);

/** Runs files in this order. `node --test` would take them by their names. */
async function runFiles(files, concurrency) {
  if (files.length === 0) return;
  const events = run({ files: files.map((path) => join(ROOT, path)), concurrency });
  events.on('test:fail', () => {
    process.exitCode = 1;
  });
  await pipeline(events.compose(new spec()), process.stdout, { end: false });
}
