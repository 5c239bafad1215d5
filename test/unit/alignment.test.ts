/** Which part of a text a chunk of speech gets, from what was heard. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { withUnsaid } from '../../src/transcription/alignment/aligning.ts';
import { matchWords } from '../../src/transcription/alignment/matching.ts';
import { createPlacing, type Part, type RecognizedChunk } from '../../src/transcription/alignment/placing.ts';
import { unitsOf } from '../../src/transcription/alignment/units.ts';
import { parseAlignment } from '../../src/wire/alignment-fields.ts';

const keysOf = (text: string) => unitsOf(text).map(({ key }) => key);
const textOf = (parts: Part[], said = true) =>
  parts
    .filter((part) => part.said === said)
    .flatMap(({ units }) => units.map(({ text }) => text))
    .join('')
    .trim();

/** Places the text in the chunks as a session does, with all of them heard. */
function placeAll(text: string, heard: RecognizedChunk[]): Part[][] {
  const place = createPlacing(text);
  return heard.map((first, i) => place([first, ...heard.slice(i + 1)], true));
}

const chunk = (text: string, speechSec = 4): RecognizedChunk => ({ text, speechSec });

test('the units of a text are its words, with their marks, and single characters of unspaced scripts', () => {
  assert.deepEqual(keysOf('“Well-known,”  said\nHe — 21!'), ['wellknown', 'said', 'he', '21']);
  assert.deepEqual(
    unitsOf(' — “Yes”, he said —').map(({ text }) => text),
    ['— “Yes”,', ' he', ' said —'],
  );
  assert.deepEqual(
    unitsOf('你好，world 世').map(({ text }) => text),
    ['你', '好，', 'world', ' 世'],
  );
  assert.deepEqual(unitsOf(' … — !'), []);
  assert.deepEqual(
    unitsOf('สวัสดี か\u3099OK').map(({ text }) => text),
    ['ส', 'วั', 'ส', 'ดี', ' か\u3099', 'OK'],
  );
});

test('words are matched around those that were misheard, missed or invented', () => {
  const heard = 'the quick brown socks jumps over a lazy dog'.split(' ');
  const text = 'the very quick brown fox jumps over the dog and sleeps'.split(' ');
  assert.deepEqual(matchWords(heard, text), [0, -1, 1, 2, 3, 4, 5, 7, 8, -1, -1]);
  assert.deepEqual(matchWords([], ['a', 'b']), [-1, -1]);
  assert.deepEqual(matchWords(['x', 'y'], []), []);
});

test('each chunk gets the words that were heard in it, and those between two chunks go where there is time', () => {
  const text = 'One two three four. Five six, seven eight nine? Ten eleven twelve.';
  const parts = placeAll(text, [
    chunk('one two three'), // four was not heard
    chunk('five sicks seven'),
    chunk(''), // nothing was heard where eight and nine are said
    chunk('ten eleven twelve'),
  ]);
  assert.deepEqual(
    parts.map((of) => textOf(of)),
    ['One two three four.', 'Five six, seven eight nine?', '', 'Ten eleven twelve.'],
  );
});

test('speech that the text does not have gets no words, wherever it is', () => {
  const text = 'The meeting begins at nine and ends at noon.';
  const parts = placeAll(text, [
    chunk('welcome to this program about the sea'),
    chunk('the meeting begins at nine'),
    chunk('please stand by for a moment'),
    chunk('and ends at noon'),
    chunk('goodbye'),
  ]);
  assert.deepEqual(
    parts.map((of) => textOf(of)),
    ['', 'The meeting begins at nine', '', 'and ends at noon.', ''],
  );
});

test('a passage that nobody can have said in the time stands between its neighbors without a length', () => {
  const passage = Array.from({ length: 60 }, (_, i) => `invented${i}`).join(' ');
  const text = `We begin here today. ${passage} and we end here now.`;
  const [first = [], second = []] = placeAll(text, [
    chunk('we begin here today'),
    chunk('and we end here now'),
  ]);
  const all = [...first, ...second];
  assert.match(textOf(all), /^We begin here today\.( invented\d)* and we end here now\.$/);
  assert(textOf(all, false).includes('invented30'));
  const units = all.flatMap((part) => part.units);
  assert.equal(units.map(({ text: of }) => of).join(''), text);
});

test('a text that is too long for the speech is refused, and says by how much', () => {
  const words = Array.from({ length: 400 }, () => 'banana').join(' ');
  assert.throws(
    () => placeAll(words, [chunk(words)]),
    (error) =>
      error instanceof GatewayError && error.code === 'text_too_long' && /1200.* 4\.0 s/.test(error.message),
  );
});

test('every unit of a long text is given to one chunk, in order, also where nothing that was heard is like it', () => {
  const text = Array.from({ length: 3000 }, (_, i) => `w${i}`).join(' ');
  const heard = Array.from({ length: 200 }, (_, i) =>
    chunk(i % 3 === 0 ? 'something else altogether' : `w${15 * i} w${15 * i + 1} w${15 * i + 2}`, 6),
  );
  const units = placeAll(text, heard).flatMap((parts) => parts.flatMap((part) => part.units));
  assert.equal(units.map((unit) => unit.text).join(''), text);
});

test('aligned words stand as in the text: pieces are joined, and what is not said has no length', () => {
  const word = (text: string, start: number, end: number) => ({ text, start, end, tokens: [] });
  const part = (text: string, said: boolean) => ({ units: unitsOf(text), said });
  const parts = [part('well-known 你好', true), part('never said', false), part('end', true)];
  const pieces = [
    word(' well', 1, 1.2),
    word('-known', 1.2, 1.5),
    word('你好', 1.5, 2),
    word(' end', 2.5, 3),
  ];
  assert.deepEqual(
    withUnsaid(pieces, parts, 1).map(({ text, start, end }) => [text, start, end]),
    [
      ['well-known', 1, 1.5],
      [' 你好', 1.5, 2],
      ['never', 2, 2],
      [' said', 2, 2],
      ['end', 2.5, 3],
    ],
  );
});

test('a text with more marks on a letter than any script has is refused before it is normalized', () => {
  const field = (text: string) => () => parseAlignment({ text });
  const started = performance.now();
  const marks = (count: number) => `a${'\u0315\u0300'.repeat(count / 2)}`;
  assert.throws(field(marks(200_000)), { code: 'invalid_value' });
  assert.ok(performance.now() - started < 500);
  assert.throws(field(`said ${marks(32)}`), { code: 'invalid_value' });
  assert.doesNotThrow(field(`said ${marks(30)}`));
});

test('a text of any number of words is placed, and those that are not said have their times', () => {
  const text = `and so ${'na '.repeat(200_000)}`;
  const [part, ...others] = createPlacing(text)([chunk('and so', 1e6)], true);
  assert(part !== undefined && others.length === 0);
  assert.equal(part.units.length, 200_002);
  assert.equal(withUnsaid([], [{ ...part, said: false }], 1).length, 200_002);
});
