/** Words become subtitles within the limits of time, length and reading speed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createSegmentNumbering, type Word } from '../../src/transcription/segment.ts';
import { toLines, toSubtitles, USUAL_SIZE } from '../../src/transcription/text/subtitles.ts';
import { toCues, toSrt, toVtt } from '../../src/wire/cues.ts';

const EPSILON = 1e-6;
const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const textOf = (words: Word[]) =>
  words
    .map((w) => w.text)
    .join('')
    .trim();
const lengthOf = (words: Word[]) => [...graphemes.segment(textOf(words))].length;
const widthOf = (text: string) =>
  [...graphemes.segment(text)].reduce((sum, { segment }) => sum + (isSquare(segment) ? 2 : 1), 0);
const isSquare = (text: string) =>
  /[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Emoji_Presentation}\u3000-\u303f\uff01-\uff60]/u.test(
    text,
  );
const timeOf = (words: Word[]) => (words.at(-1)?.end ?? 0) - (words[0]?.start ?? 0);

function wordsOf(text: string, wordSec = 0.3, gaps: Record<number, number> = {}): Word[] {
  let clock = 0;
  return text.split(' ').map((w, i) => {
    const start = clock + (gaps[i] ?? 0);
    clock = start + wordSec;
    return { text: ` ${w}`, start, end: clock, tokens: [] };
  });
}

const cues = (words: Word[]) => toSubtitles(words).map((cue) => textOf(cue.words));

test('a short sentence is one subtitle, and two sentences are two', () => {
  assert.deepEqual(cues(wordsOf('This is one. And here is another one.', 0.4)), [
    'This is one.',
    'And here is another one.',
  ]);
});

test('a long sentence is cut at a comma rather than at a space', () => {
  const text =
    'When the rain had stopped and the birds came back, we walked down to the river to look for the boat.';
  assert.deepEqual(cues(wordsOf(text)), [
    'When the rain had stopped and the birds came back,',
    'we walked down to the river to look for the boat.',
  ]);
});

test('a cut without a comma is at a pause, else before a conjunction, else where the subtitle is fullest', () => {
  const text =
    'some words here are spoken with one breath and others follow after it without any mark at all';
  const before = (index: number) => text.split(' ').slice(0, index).join(' ');
  assert.equal(cues(wordsOf(text, 0.3, { 6: 0.3 }))[0], before(6));
  assert.equal(cues(wordsOf(text, 0.3, { 6: 0.29 }))[0], before(8));
  const plain = text.replace(' and ', ' AND ');
  assert.equal(
    cues(wordsOf(plain))[0],
    'some words here are spoken with one breath AND others follow after it',
  );
});

test('a sentence without length is shown with the one that it touches, else for a moment', () => {
  const at = (start: number, end: number, text: string, speaker?: string) =>
    createSegmentNumbering()({ start, end, text: ` ${text}`, words: [], speaker } as never);
  const shown = (...segments: ReturnType<typeof at>[]) =>
    toCues(segments, 'sentence', 60).map(({ start, end, text }) => [start, end, text]);
  assert.deepEqual(shown(at(0, 1.4, 'Hello there.'), at(1.4, 1.4, 'No.'), at(1.4, 1.9, 'Never.')), [
    [0, 1.4, ' Hello there. No.'],
    [1.4, 1.9, ' Never.'],
  ]);
  assert.deepEqual(shown(at(1.4, 1.4003, 'No.'), at(1.4003, 1.9, 'Never.')), [[1.4, 1.9, ' No. Never.']]);
  assert.deepEqual(shown(at(0, 1, 'Yes?', 'A'), at(1, 1, 'No.', 'B'), at(2, 3, 'Fine.', 'B')), [
    [0, 1, ' Yes?'],
    [1, 1.5, ' No.'],
    [2, 3, ' Fine.'],
  ]);
});

test('seven seconds are a limit too', () => {
  const words = wordsOf('A B C D E F G H I J', 0.9);
  assert.deepEqual(
    cues(words).map((text) => text.split(' ').length),
    [7, 3],
  );
});

test('a subtitle of less than a second stays for one where the silence after it allows', () => {
  assert.equal(toSubtitles(wordsOf('Yes.'))[0]?.end, 1);
  assert.equal(toSubtitles(wordsOf('Yes.'), 0.7)[0]?.end, 0.7);
  const late = toSubtitles(wordsOf('Yes. This is what I said.', 0.3, { 1: 2 }));
  assert.deepEqual([late[0]?.start, late[0]?.end], [0, 1]);
  assert.equal(late[0]?.words[0]?.end, 0.3, 'the word keeps its own time');
});

test('a subtitle that cannot stay a second joins its neighbor, across sentences if it must', () => {
  assert.deepEqual(cues(wordsOf('Yes. This is what I said.')), ['Yes. This is what I said.']);
  const long = 'This sentence fills the whole of the first line and leaves no room ab.';
  assert.equal(long.length, 70);
  assert.deepEqual(cues(wordsOf(`${long} No. Really not one bit.`)), [long, 'No. Really not one bit.']);
});

test('the rest of a cut sentence is not left with less than a second', () => {
  const text = 'This sentence fills more than the whole of one line and then it goes onto.';
  const parts = toSubtitles(wordsOf(text, 0.2), 3.2);
  assert.equal(parts.length, 2);
  for (const part of parts) assert(part.end - part.start >= 1 - EPSILON);
});

test('a word that is too long or too slow stands alone', () => {
  const huge = 'x'.repeat(71);
  assert.deepEqual(cues(wordsOf(`one ${huge} two`, 1)), ['one', huge, 'two']);
  const slow: Word[] = [
    { text: ' Ooh', start: 0, end: 9, tokens: [] },
    { text: ' yes', start: 9, end: 10.5, tokens: [] },
  ];
  assert.deepEqual(
    toSubtitles(slow).map((cue) => [cue.start, cue.end]),
    [
      [0, 9],
      [9, 10.5],
    ],
  );
});

test('speech too dense for any cut keeps the two other limits', () => {
  const words = Array.from({ length: 3 }, (_, i) => ({
    text: ` ${'x'.repeat(60)}`,
    start: i * 0.4,
    end: (i + 1) * 0.4,
    tokens: [],
  }));
  assert.deepEqual(
    toSubtitles(words, 1.2).map((cue) => cue.words.length),
    [1, 1, 1],
  );
});

test('scripts without spaces, and characters of several code points, count as a reader counts them', () => {
  const han = Array.from({ length: 150 }, (_, i) => ({
    text: i === 40 ? '吗，' : '字',
    start: i * 0.05,
    end: (i + 1) * 0.05,
    tokens: [],
  }));
  const parts = toSubtitles(han);
  assert(parts.length >= 3);
  for (const part of parts) assert(lengthOf(part.words) <= 70);
  const families = wordsOf(Array(8).fill('👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦👨‍👩‍👧‍👦').join(' '));
  assert.equal(toSubtitles(families).length, 1, '8 words of 4 characters and 7 spaces');
});

const linesOf = (text: string, size = USUAL_SIZE, prefix = '') => toLines(wordsOf(text), size, prefix);

test('a subtitle has as few lines as it needs, and they are about as long as each other', () => {
  assert.deepEqual(linesOf('When the rain had stopped we went out.'), [
    'When the rain had stopped we went out.',
  ]);
  assert.deepEqual(linesOf('When the rain had stopped and the birds came back'), [
    'When the rain had stopped',
    'and the birds came back',
  ]);
});

test('lines are as wide and as many as asked for, and the text as long as they allow', () => {
  const words = wordsOf(Array(30).fill('seven77').join(' '), 0.1);
  const shapesOf = (lineWidth: number, lines: number) => {
    const size = { lineWidth, lines, characters: lineWidth * lines };
    return toSubtitles(words, undefined, size).map((cue) => toLines(cue.words, size));
  };
  for (const [lineWidth, lines] of [
    [20, 1],
    [16, 3],
    [60, 2],
    [1000, 1],
  ] as const) {
    const cues = shapesOf(lineWidth, lines);
    assert.equal(Math.max(...cues.map((cue) => cue.length)), lines);
    for (const line of cues.flat()) assert(line.length <= lineWidth, line);
    assert.equal(cues.flat().join(' '), textOf(words));
  }
  assert.equal(shapesOf(1000, 1).length, 1);
});

test('a word longer than a line is a line', () => {
  const long = 'x'.repeat(50);
  assert.deepEqual(linesOf(`so ${long} it`), ['so', long, 'it']);
});

test('the name of a speaker has its place in the first line, but no more than half of it', () => {
  const text = 'When the rain had stopped we went out.';
  assert.deepEqual(linesOf(text, USUAL_SIZE, 'A: '), [text]);
  assert.deepEqual(linesOf(text, USUAL_SIZE, 'Anna: '), ['When the rain had', 'stopped we went out.']);
  const cue = toCues(
    [
      createSegmentNumbering()({
        start: 0,
        end: 9,
        text,
        words: wordsOf(text.repeat(3)).map((word) => ({ ...word, speaker: 'Anna' })),
        speaker: 'Anna',
      } as never),
    ],
    'subtitle',
    60,
  );
  for (const line of toSrt(cue).split('\n')) assert(line.length <= 42, line);
  assert.equal(
    toSubtitles(wordsOf('One two three four five.'), 9, USUAL_SIZE, `${'x'.repeat(100)}: `).length,
    1,
  );
});

test('a subtitle stays until it can be read, where the silence after it allows', () => {
  const fast = 'These words are said much faster than anyone can read.';
  const readable = fast.length / 17;
  assert.equal(toSubtitles(wordsOf(fast, 0.12))[0]?.end, readable);
  assert.equal(toSubtitles(wordsOf(fast, 0.12), 2)[0]?.end, 2);
  assert.equal(
    toSubtitles(wordsOf(fast, 0.12))[0]?.words.at(-1)?.end.toFixed(3),
    '1.200',
    'the word keeps its own time',
  );
  const size = { lineWidth: 1000, lines: 1, characters: 1000 };
  const endless = Array(30).fill('word').join(' ');
  assert.equal(toSubtitles(wordsOf(endless, 0.05), undefined, size)[0]?.end, 7, 'no longer than the limit');
});

test('what is written in squares takes two places, in lines and in the time to read', () => {
  const han = Array.from({ length: 30 }, (_, i) => ({
    text: '字',
    start: i * 0.05,
    end: (i + 1) * 0.05,
    tokens: [],
  }));
  const [cue, ...others] = toSubtitles(han);
  assert(cue);
  assert.deepEqual(
    toLines(cue.words).map((line) => line.length),
    [15, 15],
  );
  assert.deepEqual([others.length, cue.end], [0, 60 / 17]);
});

test('nothing in, nothing out', () => assert.deepEqual(toSubtitles([]), []));

const shapes = fc.array(
  fc.record({
    text: fc.oneof(
      fc.constantFrom(' a', ' b.', ' Mr.', ' c,', ' und', ' d?', '。', '字', ' e', ' “f.”', ' é'),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 90 }),
    ),
    gap: fc.constantFrom(0, 0, 0, 0.1, 0.3, 0.7, 2),
    length: fc.oneof(fc.constantFrom(0, 0.05, 0.3), fc.double({ min: 0, max: 8, noNaN: true })),
  }),
  { maxLength: 60 },
);

function toWordList(list: { text: string; gap: number; length: number }[]): Word[] {
  let clock = 0;
  return list.map(({ text, gap, length }) => {
    const start = clock + gap;
    clock = start + length;
    return { text, start, end: clock, tokens: [] };
  });
}

test('every word is kept, in order, once, every limit holds, and times never fall or overlap', () => {
  fc.assert(
    fc.property(shapes, fc.double({ min: 0, max: 3, noNaN: true }), (list, rest) => {
      const words = toWordList(list);
      const until = (words.at(-1)?.end ?? 0) + rest;
      const parts = toSubtitles(words, until);
      assert.deepEqual(
        parts.flatMap((part) => part.words),
        words,
      );
      let clock = 0;
      for (const part of parts) {
        assert(part.start >= clock && part.end >= part.start && part.end <= until);
        assert(part.words.every((word) => word.start >= part.start && word.end <= part.end));
        clock = part.end;
        if (part.words.length === 1) continue;
        assert(lengthOf(part.words) <= 70);
        assert(hasTwoLines(part.words));
        assert(part.end - part.start <= 7 + EPSILON);
      }
    }),
    { numRuns: 300 },
  );
});

test('no way of cutting within the two upper limits leaves fewer subtitles of less than a second', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 69 }), fc.constantFrom(0.1, 0.4, 0.9, 3)), {
        maxLength: 11,
      }),
      (list) => {
        const words = toWordList(
          list.map(([size, length]) => ({ text: ` ${'x'.repeat(size)}`, gap: 0, length })),
        );
        const until = words.at(-1)?.end ?? 0;
        const short = toSubtitles(words, until).filter((part) => part.end - part.start < 1 - EPSILON).length;
        assert.equal(short, fewestShort(words));
      },
    ),
  );
});

/** True where some place to break gives two lines of 42 at most; a longer word is a line by itself. */
function hasTwoLines(words: Word[]): boolean {
  const isLine = (part: Word[]) => part.length <= 1 || widthOf(textOf(part)) <= 42;
  return words.some((_word, i) => isLine(words.slice(0, i)) && isLine(words.slice(i)));
}

/** Counts them by trying every way to cut. */
function fewestShort(words: Word[]): number {
  if (words.length === 0) return 0;
  let fewest = Number.POSITIVE_INFINITY;
  for (let to = 1; to <= words.length; to++) {
    const part = words.slice(0, to);
    if (to > 1 && (lengthOf(part) > 70 || timeOf(part) > 7 + EPSILON || !hasTwoLines(part))) continue;
    fewest = Math.min(fewest, (timeOf(part) < 1 - EPSILON ? 1 : 0) + fewestShort(words.slice(to)));
  }
  return fewest;
}

test('the last subtitle does not stay longer than the audio, nor shorter than its words', () => {
  const words = wordsOf('And so');
  const [first, last] = [words[0], words.at(-1)];
  assert(first && last && last.end < 1);
  const segment = { start: first.start, end: last.end, text: ' And so', words };
  const numbered = createSegmentNumbering()(segment as never);
  for (const [durationSec, end] of [
    [60, first.start + 1],
    [0.9, 0.9],
    [0, last.end],
  ] as const)
    assert.equal(toCues([numbered], 'subtitle', durationSec)[0]?.end, end);
});

test('two who speak at once on their channels each have cues as long as their words, in order of time', () => {
  const number = createSegmentNumbering();
  const said = (speaker: string, at: number, text: string) => {
    const words = wordsOf(text).map((w) => ({ ...w, start: w.start + at, end: w.end + at, speaker }));
    const [first, last] = [words[0], words.at(-1)];
    const segment = { start: first?.start ?? 0, end: last?.end ?? 0, text: ` ${text}`, words, speaker };
    return number(segment as never);
  };
  const long = 'publish and distribute and sublicense and sell copies of the software to all others';
  for (const at of [0, 1]) {
    const list = toCues([said('A', 0, long), said('B', at, 'Drop the two.')], 'subtitle', 60);
    const starts = list.map(({ start }) => start);
    assert.deepEqual(
      starts,
      starts.toSorted((a, b) => a - b),
    );
    for (const { start, end } of list) assert(end - start > 0.5, `${start} to ${end}`);
  }
});

test('no arrow of any length is left in a cue', () => {
  const cue = { start: 0, end: 1, text: ' a --> b ---> c -> d', speaker: 'A----->B' };
  for (const text of [toSrt([cue]), toVtt([cue])]) assert.equal(text.split('-->').length, 2, text);
  assert.match(toSrt([cue]), /^A->B: a -> b -> c -> d$/m);
});

test('a space that segments lack between them stands in the words too', () => {
  const number = createSegmentNumbering();
  const [one, two] = ['Yes.', 'No.'].map((text) =>
    number({ text, words: [{ text, start: 0, end: 1, tokens: [] }] } as never),
  );
  assert.deepEqual([one?.words[0]?.text, two?.text, two?.words[0]?.text], ['Yes.', ' No.', ' No.']);
});

test('a comma alone is no reason to cut', () => {
  assert.deepEqual(cues(wordsOf('Well, I think, and you do, too.', 0.5)), [
    'Well, I think, and you do, too.',
  ]);
});

test('times have hours, minutes, seconds and milliseconds, in the form of each format', () => {
  const cue = { start: 59.9996, end: 36_000 + 61 * 60 + 1.5, text: ' a  b\n\n c' };
  assert.equal(toSrt([cue]), '1\n00:01:00,000 --> 11:01:01,500\na b c\n\n');
  assert.equal(toVtt([cue]), 'WEBVTT\n\n00:01:00.000 --> 11:01:01.500\na b c\n\n');
});

test('each short cue has its speaker, and makes way for the next one', () => {
  const number = createSegmentNumbering();
  const said = (speaker: string, at: number, text: string) => {
    const words = wordsOf(text).map((w) => ({ ...w, start: w.start + at, end: w.end + at, speaker }));
    return number({ start: at, end: words.at(-1)?.end, text: ` ${text}`, words, speaker } as never);
  };
  const list = toCues([said('A', 0, 'Yes.'), said('B', 0.4, 'No. I said no.')], 'subtitle', 60);
  assert.deepEqual(
    list.map(({ speaker, start, end }) => [speaker, start, Number(end.toFixed(1))]),
    [
      ['A', 0, 0.4],
      ['B', 0.4, 1.6],
    ],
  );
});
