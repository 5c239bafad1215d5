/** The word error bench counts what it says it counts: `npm run bench -- accuracy`. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { differenceLines } from '../../bench/accuracy/differences.ts';
import { FORMS } from '../../bench/accuracy/forms.ts';
import { accuracyTable, detectionTable, type Heard } from '../../bench/accuracy/report.ts';
import { mixed } from '../../bench/clips/degraded-clips.ts';
import { hashOf, isSentence, type Prompt, shuffled } from '../../bench/clips/prompts.ts';
import { withCachedTexts } from '../../bench/peers/answer-cache.ts';
import type { PeerOptions, StartPeer } from '../../bench/peers/peer.ts';
import { wav } from '../wav.ts';

const prompt = (name: string, group: string, seconds: number): Prompt => ({
  name,
  audio: `${name}.wav`,
  seconds,
  text: 'press one to hear the list',
  group,
  spoken: group.slice(0, 2),
  tuning: false,
});
const short = prompt('short', 'en', 3);
const long = prompt('long', 'fr', 9);
const other = prompt('other', 'nl', 9);

function heard(peer: string, clip: Prompt, errors: number, wallMs: number): Heard {
  const wrong = errors === 0 ? [] : [`${peer} for press`];
  return {
    peer,
    clip,
    wallMs,
    text: '',
    errors,
    words: 10,
    wrong,
    language: errors === 0 ? clip.spoken : 'cy',
  };
}

const cells = (table: string, row: string) =>
  table
    .split('\n')
    .find((line) => line.startsWith(`| ${row} `))
    ?.split('|')
    .slice(2, -1)
    .map((cell) => cell.trim());

test('a table tells the rate of each group, of all that judge, and the ratio of the times beside it', () => {
  const all = [
    heard('voxgate', short, 1, 100),
    heard('voxgate', long, 0, 100),
    heard('voxgate', other, 9, 100),
    heard('peer', short, 2, 400),
    heard('peer', long, 2, 800),
    heard('peer', other, 9, 100),
  ];
  const table = accuracyTable('Title', ['en', 'fr'], all);
  assert.deepEqual(cells(table, 'en'), ['1', '10', '10.0 %', '20.0 %, 4.0x']);
  assert.deepEqual(cells(table, 'all prompts'), ['2', '20', '5.0 %', '20.0 %, 6.0x']);
  assert.deepEqual(cells(table, '8 to 15 s'), ['1', '10', '0.0 %', '20.0 %, 8.0x']);
  assert.deepEqual(cells(table, 'nl'), ['1', '10', '90.0 %', '90.0 %, 1.0x']);
});

test('a text that was known from another run has no time in the table', () => {
  const table = accuracyTable(
    'Title',
    ['en'],
    [heard('voxgate', short, 1, 100), heard('peer', short, 2, Number.NaN)],
  );
  assert.deepEqual(cells(table, 'en'), ['1', '10', '10.0 %', '20.0 %']);
  const alone = accuracyTable('Title', ['en'], [heard('peer', short, 2, 400)]);
  assert.deepEqual(cells(alone, 'en'), ['1', '10', '20.0 %'], 'nothing to compare the time with');
});

test('the languages that were found are counted, and the mistaken ones named', () => {
  const table = detectionTable(['en', 'fr'], [heard('voxgate', short, 0, 1), heard('voxgate', long, 1, 1)]);
  assert.deepEqual(cells(table, 'en'), ['1 of 1']);
  assert.deepEqual(cells(table, 'fr'), ['0 of 1 (1 cy)']);
});

test('every clip in which the gateway and the best peer differ is listed, the worst first', () => {
  const all = [
    heard('voxgate', short, 1, 1),
    heard('voxgate', long, 3, 1),
    heard('voxgate', other, 0, 1),
    ...[short, long, other].map((clip) => heard('good', clip, 0, 1)),
    ...[short, long, other].map((clip) => heard('bad', clip, 5, 1)),
  ];
  const lines = differenceLines('json', all).map((line) => line.split('\t'));
  assert.deepEqual(
    lines.map(([form, group, name, , more, own, best]) => [form, group, name, more, own, best]),
    [
      ['json', 'fr', 'long', '3', 'voxgate for press', 'good: '],
      ['json', 'en', 'short', '1', 'voxgate for press', 'good: '],
    ],
  );
});

test('noise is added at the ratio that is asked for, and loud sums are scaled, not clipped', () => {
  const speech = Float32Array.from({ length: 16_000 }, (_, i) => 0.9 * Math.sin(i / 9));
  const noise = Float32Array.from({ length: 16_000 }, (_, i) => 0.01 * Math.sin(i / 2.3));
  const power = (samples: Float32Array) => samples.reduce((sum, s) => sum + s * s, 0);
  const sum = mixed(speech, noise, 0);
  assert(sum.every((sample) => Math.abs(sample) <= 1));
  const soft = speech.map((sample) => sample / 10);
  const added = mixed(soft, noise, 10).map((sample, i) => sample - (soft[i] ?? 0));
  assert(Math.abs(10 * Math.log10(power(soft) / power(added)) - 10) < 0.1);
});

test('prompts with an even hash are for tuning, and their order does not follow their names', () => {
  const names = Array.from({ length: 200 }, (_, i) => `name-${i}`);
  const all = shuffled(names.map((name) => ({ ...prompt(name, 'en', 3), hash: hashOf('en', name) })));
  for (const { name, tuning } of all) assert.equal(tuning, BigInt(`0x${hashOf('en', name)}`) % 2n === 0n);
  const tuned = all.filter(({ tuning }) => tuning).length;
  assert(tuned > 70 && tuned < 130, `${tuned} of 200`);
  assert.notDeepEqual(
    all.map(({ name }) => name),
    names,
  );
});

test('a text that is no sentence, describes a sound, or has lost letters is left out', () => {
  assert(isSentence("You're the only one in line."));
  for (const text of [
    'Goodbye.',
    '[a tone of one second is heard here]',
    'Contrase?a incorrecta, intente otra vez',
  ]) {
    assert(!isSentence(text), text);
  }
});

test('texts of a peer are kept by samples, language and version, and have no times when they are taken again', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'texts-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [audio, same, else_] = ['a.wav', 'b.wav', 'c.wav'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(audio, wav(Float32Array.of(0.1, 0.2)));
  writeFileSync(same, wav(Float32Array.of(0.1, 0.2)));
  writeFileSync(else_, wav(Float32Array.of(0.3)));
  let asked = 0;
  let disposed = 0;
  const version =
    (name: string): StartPeer =>
    async () => ({
      name: 'peer',
      version: name,
      transcribe: async () => {
        asked += 1;
        return { wallMs: 1, firstMs: 1, text: `text ${asked}` };
      },
      cpuSec: () => 0,
      peakMegabytes: () => 0,
      [Symbol.asyncDispose]: async () => {
        disposed += 1;
      },
    });
  const start = (name: string, read: boolean) =>
    withCachedTexts('peer', version(name), { read, folder })({} as PeerOptions);

  const first = await start('1.0', false);
  assert.equal((await first.transcribe({ audio, language: 'en' })).text, 'text 1');
  assert.equal((await first.transcribe({ audio, language: 'en' })).wallMs, 1, 'times need a real answer');
  await first[Symbol.asyncDispose]();
  assert.equal(disposed, 1);

  const second = await start('1.0', true);
  const run = await second.transcribe({ audio: same, language: 'en', timed: true });
  assert.deepEqual(run, { wallMs: Number.NaN, firstMs: Number.NaN, text: 'text 1' });
  assert.equal(asked, 2);
  for (const task of [
    { audio, language: 'fr' },
    { audio, language: 'en', vad: true },
    { audio: else_, language: 'en' },
  ]) {
    const before: number = asked;
    await second.transcribe(task);
    assert.equal(asked, before + 1, JSON.stringify(task));
  }
  await (await start('1.1', true)).transcribe({ audio, language: 'en' });
  assert.equal(asked, 6);
});

test('bench/results/accuracy.md has a place for every form, and for nothing else', () => {
  const page = readFileSync(new URL('../../bench/results/accuracy.md', import.meta.url), 'utf8');
  const places = [...page.matchAll(/<!-- bench:accuracy-([\w-]+) -->[\s\S]*?<!-- \/bench:accuracy-\1 -->/g)];
  assert.deepEqual(places.map(([, form]) => form).sort(), Object.keys(FORMS).sort());
});
