/** What the decoder only repeated is dropped, what people say twice is kept, and each word has a length. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Word } from '../../src/transcription/segment.ts';
import { withLengths } from '../../src/transcription/text/word-lengths.ts';
import { mayRepeat, withoutRepeats } from '../../src/transcription/whisper/repeats.ts';
import { assertCheap } from '../cost.ts';

/** Words one after the other; `sec` is the length of each, or of the last ones where the list is shorter. */
function wordsOf(text: string, ...secs: number[]): Word[] {
  let clock = 0;
  return text.split(' ').map((word, i) => {
    const start = clock;
    clock += secs[Math.min(i, secs.length - 1)] ?? 0;
    return { text: ` ${word}`, start, end: clock, tokens: [] };
  });
}

const textOf = (words: Word[]) =>
  words
    .map(({ text }) => text)
    .join('')
    .trim();
const left = (words: Word[]) => textOf(withoutRepeats(words).words);

test('a sentence that is written again without time is dropped, with the mark at its end', () => {
  const sentence = 'Please leave a message after the tone';
  const words = [
    ...wordsOf(sentence, 0.3),
    ...wordsOf(`${sentence}.`, 0.003).map((w) => ({ ...w, start: w.start + 2.1, end: w.end + 2.1 })),
  ];
  const { words: kept, dropped } = withoutRepeats(words);
  assert.equal(textOf(kept), `${sentence}.`);
  assert.deepEqual(
    dropped.map(({ start, end, reason }) => [start.toFixed(3), end.toFixed(3), reason]),
    [['2.100', '2.121', 'repetition']],
  );
});

test('a word that is written many times without time is dropped, in any spelling and script', () => {
  assert.equal(
    left(wordsOf(`So agli${' Agli,'.repeat(15)} e poi`, 0.4, 0.4, ...Array(15).fill(0), 0.3)),
    'So agli, e poi',
  );
  const han = [...'今天很好好好好好好'].map((text, i) => ({
    text,
    start: Math.min(i, 4),
    end: Math.min(i + 1, 4),
    tokens: [],
  }));
  assert.equal(left(han), '今天很好');
});

test('what is said twice is kept, and so is what is repeated after a pause or only once in haste', () => {
  for (const words of [
    wordsOf('Please hold the line. Please hold the line.', 0.2),
    wordsOf('no no no no no no no no', 0.08),
    wordsOf('It was very very good', 0.3, 0.3, 0.5, 0, 0.3),
    wordsOf('One two three four five six', 0.3, 0),
  ])
    assert.equal(left(words), textOf(words));
});

test('only copies without time are dropped from among others', () => {
  const words = wordsOf('pronto pronto pronto pronto pronto pronto', 0.5, 0.5, 0.5, 0, 0, 0);
  assert.equal(left(words), 'pronto pronto pronto');
});

test('a text is timed only where it says something twice in a row', () => {
  for (const text of ['Well, leave it alone. Leave it alone, I said.', 'So agli agli agli', '谢谢谢谢谢谢'])
    assert(mayRepeat(text), text);
  for (const text of ['A very very long day', 'One, two, three, one, two, four', '', '慢慢走'])
    assert(!mayRepeat(text), text);
});

test('long texts of one word, and of words that differ at the end, are searched quickly', async () => {
  const same = wordsOf(Array(448).fill('banana').join(' '), 0.3);
  await assertCheap('dropping', 500, () => withoutRepeats(same));
  await assertCheap('looking', 500, () => mayRepeat(textOf(same)));
});

test('every word gets a length, in order, without overlap, within the time there is', () => {
  const list = fc.array(
    fc.record({
      gap: fc.constantFrom(0, 0, 0, 0.01, 0.5),
      sec: fc.constantFrom(0, 0, 0.004, 0.02, 0.3, 1),
      text: fc.constantFrom(' a', ' word', '字', ' longer,'),
    }),
    { minLength: 1, maxLength: 40 },
  );
  fc.assert(
    fc.property(list, (parts) => {
      let clock = 0;
      const words = parts.map(({ gap, sec, text }): Word => {
        const start = clock + gap;
        clock = start + sec;
        return { text, start, end: clock, tokens: [] };
      });
      const timed = withLengths(words, clock + 2);
      let end = 0;
      timed.forEach((word, i) => {
        assert(word.end - word.start > 0.004, `${word.start} to ${word.end}`);
        assert(word.start >= end - 1e-9 && word.end <= clock + 2);
        assert.equal(word.text, words[i]?.text);
        end = word.end;
      });
    }),
    { examples: [[[' longer,', ' longer,', ' a'].map((text) => ({ gap: 0, sec: 0, text }))]] },
  );
});

test('words that have a length keep their times, and one without shares with the nearest', () => {
  const fine = wordsOf('all of these are fine', 0.2);
  assert.deepEqual(withLengths(fine, 9), fine);
  const [wish, you, call] = withLengths(
    [
      { text: ' wish', start: 1, end: 1.8, tokens: [] },
      { text: ' you', start: 1.8, end: 1.8, tokens: [] },
      { text: ' call', start: 1.8, end: 2.4, tokens: [] },
    ],
    9,
  );
  assert.deepEqual([wish?.start, call?.start, call?.end], [1, 1.8, 2.4]);
  assert.equal(wish?.end, you?.start);
  assert.equal(((you?.end ?? 0) - (you?.start ?? 0)).toFixed(3), ((0.8 * 3) / 7).toFixed(3));
});
