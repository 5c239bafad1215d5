/**
 * Each command of docs/benchmarks.md runs, with options that leave it a few clips: it prints its table, and with --write
 * puts it into its page. A copy of the tree is measured, so that no figure of the documents changes.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CLASS_IDS } from '../../bench/clips/clip-classes.ts';
import { PEERS } from '../../bench/peers/all.ts';
import { DIARIZERS } from '../../bench/peers/diarizers.ts';
import { needsWeights } from '../model/gateway.ts';
import { createWorkingCopy, type WorkingCopy } from '../recipes/working-copy.ts';
import { documentCommands } from './document-commands.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const PAGE = 'docs/benchmarks.md';
const markdown = readFileSync(join(ROOT, PAGE), 'utf8');
const TWO_PEERS = '--peers voxgate,faster-whisper-beam-5';

interface ShortForm {
  /** Options, of which the last of a name counts. */
  options: string;
  /** What it prints. */
  prints: RegExp;
  /** The page that `--write` changes. */
  writes?: string;
}

/** By how a command begins, of which the longest counts. The others run as they stand. */
const SHORT: Readonly<Record<string, ShortForm>> = {
  'npm run bench': {
    options: '-- --only commands --peers voxgate,faster-whisper --rounds 1',
    prints: /^\| voxgate +\|/m,
  },
  'npm run bench -- --only commands --peers faster-whisper': {
    options: '--rounds 1',
    prints: /^\| faster-whisper +\|/m,
  },
  'npm run bench -- accuracy --write': {
    options: `--forms timed --languages en --most 1 ${TWO_PEERS}`,
    prints: /^\| en +\| 1 .* [\d.]+ %/m,
    writes: 'bench/results/accuracy.md',
  },
  'npm run bench -- accuracy --forms json --peers': {
    options: '--languages es --most 1',
    prints: /^\| es +\| 1 .* [\d.]+ %/m,
  },
  'npm run bench -- accuracy --forms json,detected': {
    options: '--languages en,fr --most 1 --peers voxgate',
    prints: /language given[\s\S]*^\| fr .*[\s\S]*detected[\s\S]*^\| fr /im,
  },
  'npm run bench -- silence': {
    options: '--kinds noises --most 1 --languages en',
    prints: /^\| noises +\|/m,
    writes: 'docs/accuracy.md',
  },
  'npm run bench -- speakers': {
    options: '--classes call --peers voxgate',
    prints: /^\| the labeled call \| voxgate \| [\d.]+ %/m,
    writes: 'bench/results/speakers.md',
  },
  'npm run bench -- live': {
    options: '--most 1 --delays minimal --alone',
    prints: /^\| voxgate/m,
    writes: 'docs/performance.md',
  },
  'npm run bench -- live --sessions': {
    options: '--sessions 3 --minutes 0.2',
    prints: /^\|/m,
    writes: 'docs/performance.md',
  },
  'npm run bench -- growth': {
    options: '--up-to 2 --models tiny --rounds 1 --images build/plots',
    prints: /^\| tiny +\|/m,
  },
  'npm run bench -- lanes': {
    options: '--minutes 0.5',
    prints: /^\| 32 +\|/m,
    writes: 'bench/results/time.md',
  },
  'npm run bench -- overhead': { options: '--rounds 2', prints: /^2 rounds: .* ms/m },
  'npm run bench -- proxy': {
    options: '--rounds 1 --requests 20 --gigabytes 0.02',
    prints: /^\| nginx +\|/m,
  },
  'npm run bench -- load-shedding': { options: '--rate 100 --seconds 3', prints: /503/ },
  'npm run bench -- observability': { options: '--rounds 1 --requests 20', prints: /^watching costs/m },
  'npm run bench -- words': { options: '', prints: /ms/ },
  'npm run bench -- encoders': {
    options: '--rounds 1 --seconds 5 --layers 2',
    prints: /parakeet [\s\S]*sensevoice .* onnxruntime int8/,
  },
};
/** Tests themselves, and what cuda.test.ts runs: it needs a GPU. */
const TESTED_ELSEWHERE = /^npm (test|run bench -- gpu)\b/;
const commands = documentCommands(PAGE, markdown)
  .map(({ command }) => command)
  .filter((command) => !TESTED_ELSEWHERE.test(command));
const beginnings = Object.keys(SHORT).sort((a, b) => b.length - a.length);

let copy: WorkingCopy;
before(async () => {
  copy = createWorkingCopy({ ownBuild: false, usersModels: true });
  const { code, output } = await copy.run('npm run --silent build -- ts');
  assert.equal(code, 0, output);
});
after(() => copy[Symbol.asyncDispose]());

test('each short form is that of a command', () => {
  for (const beginning of beginnings)
    assert(
      commands.some((command) => command.startsWith(beginning)),
      `${PAGE} has no: ${beginning}`,
    );
});

test('the commands of the tables name classes and peers that exist', () => {
  const named = [...markdown.matchAll(/--(only|peers) ([\w,-]+)/g)];
  assert(named.length > 20, `only ${named.length}`);
  for (const [, option = '', names = ''] of named) {
    const known = option === 'only' ? [...CLASS_IDS] : [...Object.keys(PEERS), ...Object.keys(DIARIZERS)];
    for (const name of names.split(',')) assert(known.includes(name), `--${option} ${name}`);
  }
});

for (const command of commands)
  test(`${PAGE}: ${command}`, { timeout: 600_000 }, async (t) => {
    if (!needsWeights(t)) return;
    const beginning = beginnings.find((start) => command.startsWith(start)) ?? '';
    const { options, prints, writes } = SHORT[beginning] ?? { options: '', prints: /^/ };
    const read = () => (writes === undefined ? '' : readFileSync(join(copy.dir, writes), 'utf8'));
    const earlier = read();
    const { code, stdout, output } = await copy.run(`${command} ${options}`);
    assert.equal(code, 0, output);
    assert.match(stdout, prints);
    if (writes !== undefined) assert.notEqual(read(), earlier, `${writes} is as it was`);
  });
