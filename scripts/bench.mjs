/**
 * `npm run bench -- SUBJECT [OPTIONS]` runs the bench of a subject, and without one the comparison with other programs.
 * docs/benchmarks.md says which figures each of them repeats; the head of each file names its options.
 */
import { exec, fail } from './tools.mjs';

const BENCHES = {
  compare: 'bench/compare/compare.ts',
  accuracy: 'bench/accuracy/accuracy.ts',
  words: 'bench/accuracy/word-times.ts',
  silence: 'bench/silence/silence.ts',
  speakers: 'bench/speakers/speakers.ts',
  live: 'bench/live/live.ts',
  growth: 'bench/growth/growth.ts',
  lanes: 'bench/load/lanes.ts',
  'load-shedding': 'bench/load/load-shedding.ts',
  scale: 'bench/load/scale.ts',
  memory: 'bench/memory/memory.ts',
  upload: 'bench/memory/upload.ts',
  proxy: 'bench/proxy/proxy.ts',
  overhead: 'bench/proxy/overhead.ts',
  observability: 'bench/proxy/observability.ts',
  encoders: 'bench/encoders/encoders.ts',
  pictures: 'bench/common/pictures.ts',
  'moving-picture': 'bench/common/moving-picture.ts',
  gpu: 'scripts/gpu-report.mjs',
};

const args = process.argv.slice(2);
const subject = args[0] === undefined || args[0].startsWith('-') ? 'compare' : args.shift();
if (!Object.hasOwn(BENCHES, subject))
  fail(`There is no bench of ${subject}, only of ${Object.keys(BENCHES).join(', ')}.`);
const file = BENCHES[subject];
const loader = file.endsWith('.ts') ? ['--import', 'tsx'] : [];
exec(process.execPath, [...loader, file, ...args]);
