/**
 * `npm test` runs every test, or those whose path contains one of the arguments. Each file has a process of its own,
 * so that a crash of the addon fails one file. Files that measure times or memory, or transcribe with all cores, run
 * alone; the rest share the cores. A file runs as a bundle (bundle.mjs) which is made anew each time; without this
 * script it runs with `node --import tsx --test`.
 * Where many files run, up to three that failed run once more when the others have ended: a test that fails only on a
 * busy machine must not fail the whole run. It is named at the end, so that it is mended. All second tries together have
 * `AGAIN_MS`.
 * The slow tests of `test/deep` run only when an argument names them, as `npm run check:deep` does.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { bundle, bundleOf } from './bundle.mjs';
import { fail, forEachAtOnce, isLate, ROOT, runLines, testFiles, turned } from './tools.mjs';

const wanted = process.argv.slice(2);
const files = testFiles().filter((path) =>
  wanted.length === 0 ? !path.startsWith('test/deep/') : wanted.some((w) => path.includes(w)),
);
if (files.length === 0) fail(`No test file matches ${wanted.join(' ')}`);

const ALONE = /^test\/(deep|model|native)\/|^test\/http\/(proxies|small-requests)\./;
const SHARING_DEEP =
  /^test\/deep\/(api-page|bad-files|benches|clients|cross-site|cuda(-package)?|documents|generated-sounds|image|macos|models-import|musl|package|package-arm64|recipes|recorded-requests|release|request-fuzz|schedules|site|vulkan)\./;
const SHARING =
  /^test\/(model\/package-index|native\/(audio-(open|stereo)|changing-file|compute-libraries|crash|damaged-audio|environment|ffmpeg-search|patches|refused-threads))\./;
/** These begin first, so that a core does not wait for one of them at the end. */
const LONGEST = /^test\/deep\/(benches|recipes|schedules)\./;
/** No file takes half of this. One that hangs ends, and fails. */
const LIMIT_MS = 30 * 60_000;
/** If more files fail, the cause is hardly a busy machine. */
const MOST_AGAIN = 3;
/** The time of all second tries together. A file that fails after a longer time is not run again. */
const AGAIN_MS = 5 * 60_000;
/** What fails is said again at the end, where a log that is cut still has it, with as many lines of each file. */
const SAID_AGAIN = 60;
/** What Node prints above the failures of a file, when all of its tests have ended. */
const FAILURES = '✖ failing tests:';
/** What Node prints at the end of each file. */
const SUMMARY = /^ℹ (tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) ([\d.]+)$/;

/** What tests start as a process (test/program.ts). */
const PROGRAMS = [
  'src/main.ts',
  'test/clients/openai-conversation.ts',
  'test/faults/fail-nth/gateway.ts',
  'test/http/attack-process.ts',
  'test/http/impatient-supervisor.ts',
  'test/http/scripted-serve.ts',
];
const bundles = makeFolder();
await bundle([...files, ...PROGRAMS], bundles);
process.env.VOXGATE_TEST_BUNDLES = bundles;

const isAlone = (path) => ALONE.test(path) && ![SHARING, SHARING_DEEP].some((sharing) => sharing.test(path));
const isLongest = (path) => LONGEST.test(path);
const byTurn = turned(files);
const together = byTurn.filter((path) => !isAlone(path));
together.sort((a, b) => Number(isLongest(b)) - Number(isLongest(a)));
const passed = { pass: 0, skipped: 0 };
let failed = [];
const took = [];
for (const [paths, atOnce] of turned([
  [together, 2],
  [byTurn.filter(isAlone), 1],
]))
  await forEachAtOnce(paths, atOnce, async (path) => {
    if (path.startsWith('test/deep/') && isLate(path)) return;
    await runFile(path, atOnce === 1 || files.length === 1);
  });
const isWorthIt = failed.reduce((sum, { seconds }) => sum + seconds * 1000, 0) < AGAIN_MS;
const once = files.length > MOST_AGAIN && failed.length <= MOST_AGAIN && isWorthIt ? failed : [];
if (once.length > 0) {
  process.stdout.write('\n== once more, what has failed\n');
  failed = [];
  const until = Date.now() + AGAIN_MS;
  for (const { path } of once) await runFile(path, true, Math.max(1, until - Date.now()));
}

const slowest = took.sort((a, b) => b.seconds - a.seconds).slice(0, 10);
if (files.length > 1)
  process.stdout.write(
    `\n== the slowest of ${files.length} files\n${slowest.map(({ path, seconds }) => `${seconds.toFixed(1)} s ${path}\n`).join('')}`,
  );
process.stdout.write(
  `\n${passed.pass} tests passed, ${passed.skipped} were skipped, ${failed.length} of ${files.length} files failed\n`,
);
const unstable = once.filter(({ path }) => failed.every((again) => again.path !== path));
sayFailures('passed only the second time', unstable);
sayFailures('failed', failed);
if (failed.length > 0) process.exitCode = 1;

/** @param isOnly no other file runs, so that what the tests say is printed at once, and not when all have ended */
async function runFile(path, isOnly, limitMs = LIMIT_MS) {
  const lines = [];
  const counts = { pass: 0, skipped: 0, fail: 0, cancelled: 0 };
  const print = (line) => process.stdout.write(`${line}\n`);
  const onLine = (line) => {
    const [, what, count] = SUMMARY.exec(line) ?? [];
    if (what in counts) counts[what] = Number(count);
    if (what !== undefined) return;
    lines.push(line);
    if (isOnly) print(line);
  };
  if (isOnly) print(`\n== ${path}`);
  const reporter = ['--test-reporter=spec', '--test-reporter-destination=stdout'];
  const args = ['--enable-source-maps', ...reporter, bundleOf(path, bundles)];
  const { status, seconds } = await runLines(process.execPath, args, { onLine, limitMs });
  if (!isOnly) for (const line of [`\n== ${path}`, ...lines]) print(line);
  // A test of a command may have changed the exit code.
  if (status !== 0 || counts.fail + counts.cancelled > 0)
    failed.push({ path, seconds, lines: failures(lines) });
  else for (const what in passed) passed[what] += counts[what];
  took.push({ path, seconds });
}

/** Says the failures of some files, and then their names, where a log that is cut still has them. */
function sayFailures(title, some) {
  if (some.length === 0) return;
  for (const { path, lines } of some)
    process.stdout.write(`\n== ${title}: ${path}\n${lines.map((line) => `${line}\n`).join('')}`);
  process.stdout.write(`\n${title}:\n${some.map(({ path }) => `  ${path}\n`).join('')}`);
}

/** A folder that is gone when this process is. */
function makeFolder() {
  mkdirSync(join(ROOT, 'build-tests'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'build-tests', 'run-'));
  chmodSync(folder, 0o755); // a test may go on as another user, and load a part of its bundle then
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
  return folder;
}

/** What a file printed of its failures; the end of what it printed where it ended otherwise. */
function failures(lines) {
  const at = lines.indexOf(FAILURES);
  return at < 0 ? lines.slice(-SAID_AGAIN) : lines.slice(at + 1, at + 1 + SAID_AGAIN);
}
