/** The bench of diarization counts what it says it counts: `npm run bench -- speakers`. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { UNMEASURED } from '../../bench/common/processes.ts';
import { withCachedTurns } from '../../bench/peers/answer-cache.ts';
import type { DiarizerOptions, StartDiarizer } from '../../bench/peers/diarizers.ts';
import { labeledWords } from '../../bench/speakers/conversations/reference.ts';
import type { DiarizationErrors } from '../../bench/speakers/diarization-error.ts';
import { errorRate, errorTable, type FileResult, partsTable } from '../../bench/speakers/report.ts';
import { wav } from '../wav.ts';

test('a word goes to the speaker who speaks for most of it, or nearest to it', () => {
  const turns = [
    { speaker: 'A', start: 0, end: 2 },
    { speaker: 'B', start: 1.8, end: 4 },
  ];
  const words = [
    { word: ' one', start: 0.2, end: 0.5 },
    { word: ' two', start: 1.7, end: 2.4 },
    { word: ' three', start: 4.5, end: 4.8 },
  ];
  assert.deepEqual(
    labeledWords(words, turns).map(({ speaker, word }) => `${speaker} ${word}`),
    ['A one', 'B two', 'B three'],
  );
  assert.deepEqual(labeledWords(words, []), []);
});

const errors: DiarizationErrors = {
  speech: 10,
  missed: 1,
  falseAlarm: 0.5,
  confusion: 0.5,
  jaccard: 0.3,
  known: 2,
  found: 2,
  words: null,
  wordErrors: null,
};
const result = (more: Partial<FileResult>, wrong: Partial<DiarizationErrors> = {}): FileResult => ({
  peer: 'voxgate',
  kind: 'clean',
  file: 'clean-2-a',
  seconds: 60,
  wallMs: 600,
  cpuSec: 1.2,
  ...more,
  errors: { ...errors, ...wrong },
});

test('rates are those of all files together, and meetings stand apart from conversations', () => {
  const results = [
    result({}),
    result(
      { file: 'clean-3-a' },
      { speech: 30, confusion: 6.5, known: 3, found: 5, words: 20, wordErrors: 5 },
    ),
    result({ file: 'meeting1-2-a', kind: 'meeting', wallMs: Number.NaN, cpuSec: Number.NaN }, { missed: 9 }),
  ];
  assert.equal(errorRate(results.slice(0, 1)), 0.2);
  assert.equal(errorRate(results.slice(0, 2)), 0.25);
  const rows = errorTable(results).split('\n');
  const row = (title: string) => rows.find((line) => line.startsWith(`| ${title} `))?.replaceAll(/ +/g, ' ');
  assert.equal(row('all conversations'), '| all conversations | 2 | 2.0 | 25.0 % |');
  assert.equal(row('3 speakers'), '| 3 speakers | 1 | 1.0 | 26.7 % |');
  assert.equal(row('meetings'), '| meetings of 30 s | 1 | 1.0 | 100.0 % |');
  const [, , whole, meetings] = partsTable(results, new Map([['voxgate', 400]]))
    .split('\n')
    .map((line) => line.replaceAll(/ +/g, ' '));
  assert.equal(
    whole,
    '| conversations | voxgate | 25.0 % | 5.0 % | 2.5 % | 17.5 % | 30.0 % | 25.0 % | 50.0 % | 1.00 | 0.010 | 0.020 | 400 |',
  );
  // Turns from an earlier run have no times.
  assert(meetings?.includes('| 100.0 % | 0.00 | | | 400 |'), meetings);
});

test('turns of peers are kept by samples and version, and have no times when they are read', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-turns-'));
  try {
    const audio = join(folder, 'a.wav');
    writeFileSync(audio, wav(new Float32Array(1600).fill(0.1)));
    let asked = 0;
    const start =
      (version: string): StartDiarizer =>
      async () => ({
        name: 'peer',
        version,
        diarize: async () => {
          asked += 1;
          return { turns: [{ speaker: 'A', start: 0, end: asked }], wallMs: 5, cpuSec: 1 };
        },
        ...UNMEASURED,
      });
    const peer = (version: string, read: boolean) =>
      withCachedTurns('peer', start(version), { read, folder })({} as DiarizerOptions);
    const first = await (await peer('1', true)).diarize(audio);
    assert.equal(first.wallMs, 5);
    const again = await (await peer('1', true)).diarize(audio);
    assert.deepEqual(again, { turns: first.turns, wallMs: Number.NaN, cpuSec: Number.NaN });
    assert.equal((await (await peer('1', false)).diarize(audio)).turns[0]?.end, 2);
    assert.equal((await (await peer('2', true)).diarize(audio)).turns[0]?.end, 3);
    assert.equal(readFileSync(join(folder, 'peer.jsonl'), 'utf8').trim().split('\n').length, 2);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
