/**
 * `npm run fuzz -- [TARGET ...] [--seconds N] [--seed S]` compiles the fuzz targets of native/fuzz/ and runs them, or
 * those that are named, two at a time. A run starts from the corpus in the repository and a fixed seed and leaves the
 * corpus alone. An input that fails is copied to build-fuzz/failures/, and the command that runs it again is printed.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { compile, configure } from './cmake.mjs';
import { fail, forEachAtOnce, ROOT, requireTools, runLines } from './tools.mjs';

const CORPUS = join(ROOT, 'native/fuzz/corpus');
/** Each target has a folder of seeds (native/fuzz/make-corpus.mjs). */
const TARGETS = readdirSync(CORPUS).sort();
const AT_ONCE = 2;
/** What one input may use. The decoders may take 32 MiB, and a model file as much as it is large. */
const LIMITS = ['-timeout=20', '-rss_limit_mb=1024', '-malloc_limit_mb=256'];
const SETTINGS = {
  ...process.env,
  ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1:allocator_may_return_null=0',
  UBSAN_OPTIONS: 'print_stacktrace=1',
  OMP_NUM_THREADS: '1',
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'string' },
  },
});
const wanted = positionals.length > 0 ? positionals : TARGETS;
const unknown = wanted.filter((name) => !TARGETS.includes(name));
if (unknown.length > 0) fail(`There is no target ${unknown.join(', ')}; there are ${TARGETS.join(', ')}.`);

requireTools(['cmake', 'make', 'patch', 'clang', 'fuzzer']);

build();
const startedAt = Date.now();
const failures = join(ROOT, 'build-fuzz/failures');
mkdirSync(failures, { recursive: true });
const results = [];
await forEachAtOnce(wanted, AT_ONCE, async (name) => results.push(await fuzz(name)));
process.stdout.write(`== fuzz: ${((Date.now() - startedAt) / 1000).toFixed(1)} s\n`);
process.exit(results.every(({ ok }) => ok) ? 0 : 1);

function build() {
  // The tests' folder has ggml, and without sanitizers in it.
  configure('build-asan', ['-DVOXGATE_TESTS=ON', '-DVOXGATE_SANITIZE=ON'], { title: 'configure ggml' });
  compile('build-asan', { title: 'compile ggml', target: 'ggml' });
  const compilers = ['-DCMAKE_C_COMPILER=clang', '-DCMAKE_CXX_COMPILER=clang++'];
  const ggml = `-DVOXGATE_GGML=${join(ROOT, 'build-asan')}`;
  configure('build-fuzz', [...compilers, '-DVOXGATE_FUZZ=ON', '-DVOXGATE_SANITIZE=ON', ggml]);
  compile('build-fuzz');
}

/** Runs one target for the time that was asked for, and prints how much it did. */
async function fuzz(name) {
  const found =
    values.keep === undefined ? mkdtempSync(join(tmpdir(), 'voxgate-fuzz-')) : join(values.keep, name);
  mkdirSync(found, { recursive: true });
  const corpus = join(CORPUS, name);
  const dictionary = join(ROOT, 'native/fuzz/dictionaries', `${name}.dict`);
  const program = join(ROOT, 'build-fuzz/native/fuzz/voxgate-fuzz');
  const args = [
    `--target=${name}`,
    ...LIMITS,
    `-seed=${values.seed}`,
    `-max_total_time=${values.seconds}`,
    '-max_len=16384',
    '-print_final_stats=1',
    `-artifact_prefix=${join(failures, `${name}-`)}`,
    ...(existsSync(dictionary) ? [`-dict=${dictionary}`] : []),
    found,
    corpus,
  ];
  const before = new Set(readdirSync(failures));
  let output = '';
  const onLine = (line) => {
    output = `${output}${line}\n`.slice(-200_000);
  };
  const { status } = await runLines(program, args, { env: SETTINGS, onLine });
  const count = /number_of_executed_units: (\d+)/.exec(output)?.[1] ?? '?';
  const memory = /peak_rss_mb: +(\d+)/.exec(output)?.[1] ?? '?';
  const coverage = [...output.matchAll(/ cov: (\d+)/g)].at(-1)?.[1] ?? '?';
  const size = readdirSync(found).length + readdirSync(corpus).length;
  if (values.keep === undefined) rmSync(found, { recursive: true, force: true });
  const line = `${name}: ${count} inputs, ${coverage} edges, corpus of ${size}, ${memory} MB`;
  if (status === 0) {
    process.stdout.write(`ok   ${line}\n`);
    return { ok: true };
  }
  const input = readdirSync(failures).find((file) => !before.has(file) && file.startsWith(name));
  process.stdout.write(`${output.slice(-8000)}\nFAIL ${line}\n`);
  if (input !== undefined) {
    process.stdout.write(`The input is ${join(failures, input)}\n`);
    process.stdout.write(`Again: ${program} --target=${name} ${join(failures, input)}\n`);
  }
  return { ok: false };
}
