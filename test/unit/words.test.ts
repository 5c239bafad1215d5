/** Tokens become words with times, in every script. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { DecodedSegment } from '../../src/engine/types.ts';
import { toWords } from '../../src/transcription/text/words.ts';

/** Makes tokens of 100 ms each, one after the other. */
function segmentOf(...pieces: (string | Uint8Array)[]): DecodedSegment {
  const tokens = pieces.map((piece, i) => ({
    id: i,
    bytes: typeof piece === 'string' ? Buffer.from(piece) : piece,
    logprob: -0.1,
    startMs: i * 100,
    endMs: (i + 1) * 100,
  }));
  return { startMs: 0, endMs: pieces.length * 100, tokens, noSpeechProb: 0 };
}

const texts = (segment: DecodedSegment, language = 'en') =>
  toWords([segment], language, 0).map((w) => w.text);

test('subword tokens join into words, with times from the first to the last', () => {
  const words = toWords([segmentOf(' hel', 'lo', ' wor', 'ld')], 'en', 10);
  assert.deepEqual(
    words.map((w) => [w.text, w.start, w.end]),
    [
      [' hello', 10, 10.2],
      [' world', 10.2, 10.4],
    ],
  );
});

test('punctuation joins its neighbor, and its own time is not the word’s', () => {
  const words = toWords([segmentOf(' you', ',', ' ask', '.')], 'en', 0);
  assert.deepEqual(
    words.map((w) => [w.text, w.end]),
    [
      [' you,', 0.1],
      [' ask.', 0.3],
    ],
  );
  assert.deepEqual(texts(segmentOf(' say', ' "', 'yes', '"', ' now')), [' say', ' "yes"', ' now']);
});

test('a character spread over tokens is one character', () => {
  const [a, b, c] = Buffer.from('é世').subarray(0, 3);
  const parts = [
    Uint8Array.of(32, a as number),
    Uint8Array.of(b as number, c as number),
    Buffer.from('世').subarray(1),
  ];
  assert.deepEqual(texts(segmentOf(...parts)), [' é世']);
});

test('bytes that never become a character are shown, not lost', () => {
  assert.deepEqual(texts(segmentOf(' ok', Uint8Array.of(0xe4, 0xb8))), [' ok�']);
});

test('control tokens ride along and make no words', () => {
  const words = toWords([segmentOf('', ' hi', '', '')], 'en', 0);
  assert.equal(words.length, 1);
  assert.deepEqual(
    words[0]?.tokens.map((t) => t.id),
    [0, 1, 2, 3],
  );
  assert.deepEqual(toWords([segmentOf('', '')], 'en', 0), []);
});

test('a script without spaces has a word for each token that spells characters', () => {
  assert.deepEqual(texts(segmentOf('我', '们', '好', '。'), 'zh'), ['我', '们', '好。']);
});

test('a space that is a token by itself is kept before the next word, with that word’s time', () => {
  const words = toWords([segmentOf('はい', ' ', 'そう', ' ')], 'ja', 0);
  assert.deepEqual(
    words.map((w) => [w.text, w.start, w.tokens.length]),
    [
      ['はい', 0, 1],
      [' そう', 0.2, 3],
    ],
  );
  assert.deepEqual(texts(segmentOf(' ', ' ก', ' ', ' ', 'ข', ' ', '。'), 'th'), [' ก', ' ข。']);
  assert.deepEqual(texts(segmentOf(' ', ' '), 'ja'), []);
});

test('no word is a piece of one, in any language with spaces, and its time is that of all its pieces', () => {
  const words = toWords([segmentOf(' $', '3', '.', '50', ' well', '-', 'known')], 'en', 0);
  assert.deepEqual(
    words.map((w) => [w.text, w.start, w.end]),
    [
      [' $3.50', 0, 0.4],
      [' well-known', 0.4, 0.7],
    ],
  );
  assert.deepEqual(texts(segmentOf(' C', "'", 'est', ' l', "'", 'instant', '.'), 'fr'), [
    " C'est",
    " l'instant.",
  ]);
  assert.deepEqual(texts(segmentOf('你', 'OK', '.', '5', '好'), 'zh'), ['你', 'OK.5', '好']);
});

for (const [language, pieces, expected] of [
  ['fr', [' «', ' Arr', 'ête', ' !', ' »', ' dit', '-il', '.'], [' « Arrête ! »', ' dit-il.']],
  ['fr', [' Oui', ' ;', ' non', ' …'], [' Oui ;', ' non …']],
  ['de', [' Er', ' sagte', ':', ' „', 'Halt', '!', '“', ' Dann'], [' Er', ' sagte:', ' „Halt!“', ' Dann']],
  ['es', [' ¡', 'No', '!', ' ¿', ' Qué', '?'], [' ¡No!', ' ¿ Qué?']],
  ['en', [' he', ' -', ' she', ' —', ' "', ' yes', '"'], [' he', ' - she', ' — " yes"']],
  ['en', [' ...', ' and', ' 50', ' %', ' off', ' (', ')', ' -'], [' ... and', ' 50', ' %', ' off () -']],
  ['ja', ['「', '行', 'こう', '。', '」', 'と', '『', '本', '』'], ['「行', 'こう。」', 'と', '『本』']],
  ['zh', ['《', '红楼', '》', '；', '他', '：', '“', '好', '”', '…', '…'], ['《红楼》；', '他：', '“好”……']],
] as const) {
  test(`marks are parts of words: ${language} ${pieces.join('')}`, () =>
    assert.deepEqual(texts(segmentOf(...pieces), language), expected));
}

test('no word begins inside a character', () => {
  assert.deepEqual(texts(segmentOf('ส', 'ว', 'ั', 'ส', 'ด', 'ี', 'น', 'ำ'), 'th'), ['ส', 'วั', 'ส', 'ดี', 'นำ']);
  assert.deepEqual(texts(segmentOf('か', '\u3099', 'き', 'か', '\u3099', 'OK'), 'ja'), [
    'か\u3099',
    'き',
    'か\u3099',
    'OK',
  ]);
});

test('a pause beside a full stop is given back to the silence', () => {
  const segment = segmentOf(' one', ' two', '.', ' three', ' four', ' five');
  const three = segment.tokens[3];
  assert(three);
  three.endMs += 3000;
  for (const later of segment.tokens.slice(4)) {
    later.startMs += 3000;
    later.endMs += 3000;
  }
  const words = toWords([segment], 'en', 0);
  assert.deepEqual(words.map((w) => [w.text, Number(w.start.toFixed(2)), Number(w.end.toFixed(2))])[2], [
    ' three',
    3.2,
    3.4,
  ]);
});

test('a word does not reach across the silence between two spans of speech', () => {
  const segment = segmentOf(' one', ' two', ' three');
  const two = segment.tokens[1];
  assert(two);
  two.endMs = 1500;
  const speech = [
    { startSec: 0, endSec: 0.3 },
    { startSec: 1.2, endSec: 2 },
  ];
  const [, word] = toWords([segment], 'en', 0, speech);
  assert.deepEqual([word?.text, word?.start, word?.end], [' two', 1.2, 1.5]);
});

test('a word that goes on behind a silence is said there, however early the alignment begins it', () => {
  const segment = segmentOf(' one', ' two');
  const [, two] = segment.tokens;
  assert(two);
  two.endMs = 1900;
  const timesOf = (resumesAt: number) => {
    const speech = [
      { startSec: 0, endSec: 0.7 },
      { startSec: resumesAt, endSec: 3 },
    ];
    const [, word] = toWords([segment], 'en', 0, speech);
    return [word?.start, word?.end];
  };
  assert.deepEqual(timesOf(1.5), [1.5, 1.9]);
  assert.deepEqual(timesOf(1.63), [1.63, 1.9]);
  assert.deepEqual(timesOf(1.8), [0.1, 0.7], 'the padding of the speech behind the silence is no word');
});

test('the first and the last word end with the speech, and a word outside of it keeps its time', () => {
  const segment = segmentOf(' one', ' two', ' three');
  const timesOf = (startSec: number, endSec: number) =>
    toWords([segment], 'en', 0, [{ startSec, endSec }]).map(({ start, end }) => [
      Number(start.toFixed(2)),
      Number(end.toFixed(2)),
    ]);
  assert.deepEqual(timesOf(0, 9), [
    [0, 0.1],
    [0.1, 0.2],
    [0.2, 0.3],
  ]);
  assert.deepEqual(timesOf(0.03, 0.27), [
    [0.03, 0.1],
    [0.1, 0.2],
    [0.2, 0.27],
  ]);
  assert.deepEqual(timesOf(0.12, 9)[0], [0, 0.1]);
  assert.deepEqual(timesOf(0, 0.18)[2], [0.2, 0.3]);
});

test('a word left without time takes some of the silence before it', () => {
  const segment = segmentOf(' one', ' two', ' three', ' four');
  const [, two, three, four] = segment.tokens;
  assert(two && three && four);
  [three.startMs, three.endMs, four.startMs, four.endMs] = [1000, 1000, 1000, 1100];
  const [, , word] = toWords([segment], 'en', 0);
  assert.deepEqual([word?.text, word?.start, word?.end], [' three', 0.9, 1]);
});

test('the first word begins with its chunk and its speech, however short that leaves it', () => {
  const segment = segmentOf(' one', ' two', ' three');
  const [one, two] = segment.tokens;
  assert(one && two);
  [one.startMs, one.endMs, two.startMs] = [0, 20, 20];
  const startOfFirst = (offsetSec: number, startSec: number) =>
    toWords([segment], 'en', offsetSec, [{ startSec, endSec: 20 }])[0]?.start;
  assert.equal(startOfFirst(10, 10), 10);
  assert.equal(startOfFirst(10, 10.01), 10.01);
  assert.equal(startOfFirst(10, 10.5), 10, 'what is said softly before the speech stays there');
});

test('no token and no character is lost or reordered', () => {
  const piece = fc.oneof(
    fc.constantFrom(' the', ' qu', 'ick', ',', '.', ' "', '"', '-', '…', ' ', '', '你', ' (', ')', "'s"),
    fc.string({ maxLength: 4 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), fc.constantFrom('en', 'zh', 'ja'), (pieces, language) => {
      const segment = segmentOf(...pieces);
      const words = toWords([segment], language, 0);
      const visible = (text: string) => text.replace(/\s+/g, ' ').trim();
      assert.equal(
        visible(words.map((w) => w.text).join('')),
        visible(Buffer.from(pieces.join('')).toString()),
      );
      for (const word of words) assert(word.end >= word.start || word.tokens.length === 0);
    }),
  );
});

test('bytes that never become a character take no other word along', () => {
  assert.deepEqual(texts(segmentOf(' Hello', Uint8Array.of(0xe4), ' world', ' is')), [
    ' Hello\ufffd',
    ' world',
    ' is',
  ]);
});

test('a word that ends before a silence keeps its own end', () => {
  const segment = segmentOf(' one', ' two', ' three');
  const [, , three] = segment.tokens;
  assert(three);
  [three.startMs, three.endMs] = [1300, 1400];
  const speech = [
    { startSec: 0, endSec: 0.5 },
    { startSec: 1.2, endSec: 2 },
  ];
  assert.deepEqual(
    toWords([segment], 'en', 0, speech).map(({ start, end }) => [start, end]),
    [
      [0, 0.1],
      [0.1, 0.2],
      [1.3, 1.4],
    ],
  );
});

test('a script without spaces is cut at its own characters only, and so is a mix of languages', () => {
  for (const language of ['zh', 'mul'])
    assert.deepEqual(
      texts(segmentOf('用', ' Chat', 'GPT', '吧'), language),
      ['用', ' ChatGPT', '吧'],
      language,
    );
  assert.deepEqual(texts(segmentOf(' 北', '京')), [' 北京'], 'in English it is a word as any other');
});
