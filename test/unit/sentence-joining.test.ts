/** Sentences go on in the next chunk: these tests say what joins, what is recomputed, and when each leaves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Chunk } from '../../src/transcription/chunks.ts';
import type { ChunkRecognition } from '../../src/transcription/lanes.ts';
import type { UnnumberedSegment, Word } from '../../src/transcription/segment.ts';
import { joinParts, toSegments } from '../../src/transcription/segments.ts';
import { joinSentences } from '../../src/transcription/sentence-joining.ts';
import { endsSentence, isFinished, toSentences } from '../../src/transcription/sentences.ts';

interface Heard {
  words: Word[];
  /** The time at which speech begins again. */
  until: number;
  noSpeechProb?: number;
  language?: string;
}

let ids = 0;
const wordAt = (text: string, start: number, end: number): Word => ({
  text,
  start,
  end,
  tokens: [{ id: ids++, bytes: Buffer.from(text), logprob: -((ids * 7) % 10) / 10 }],
});

/** Makes words of 0.5 s without a pause between them. */
const wordsFrom = (startSec: number, text: string): Word[] =>
  text.split(/(?= )/).map((word, i) => wordAt(word, startSec + i / 2, startSec + (i + 1) / 2));

/** Makes the words of a chunk into sentences as a recognizer does. */
function recognition({ words, until, noSpeechProb = 0, language = 'en' }: Heard): ChunkRecognition {
  const startSec = words[0]?.start ?? until;
  const endSec = words.at(-1)?.end ?? until;
  const chunk: Chunk = {
    startSec,
    endSec,
    silentUntilSec: until,
    samples: new Float32Array(0),
    speech: [],
  };
  const detected = { language, probability: 1 };
  const sentences = toSegments(toSentences(words), chunk, { temperature: 0, noSpeechProb, language });
  return { chunk, detected, sentences };
}

async function* given(heard: Heard[]) {
  for (const one of heard) yield recognition(one);
}

async function joined(...heard: Heard[]): Promise<UnnumberedSegment[]> {
  const segments: UnnumberedSegment[] = [];
  for await (const segment of joinSentences(given(heard))) segments.push(segment);
  return segments;
}

const shown = (segments: UnnumberedSegment[]) => segments.map(({ text, start, end }) => [text, start, end]);

test('a sentence that goes on in the next chunk, and in the one after it, is one segment', async () => {
  const segments = await joined(
    { words: wordsFrom(0, ' One. Two and'), until: 2.5 },
    { words: wordsFrom(2.5, ' three and'), until: 4 },
    { words: wordsFrom(4, ' four. Five.'), until: 6 },
  );
  assert.deepEqual(shown(segments), [
    [' One.', 0, 0.5],
    [' Two and three and four.', 0.5, 4.5],
    [' Five.', 4.5, 5],
  ]);
});

test('a pause of 1.5 s joins, and a longer one does not', async () => {
  const parts = (pause: number): Heard[] => [
    { words: wordsFrom(0, ' One two'), until: 1 + pause },
    { words: wordsFrom(1 + pause, ' three.'), until: 9 },
  ];
  assert.deepEqual(shown(await joined(...parts(1.5))), [[' One two three.', 0, 3]]);
  assert.deepEqual(shown(await joined(...parts(1.6))), [
    [' One two', 0, 1],
    [' three.', 2.6, 3.1],
  ]);
});

test('parts of 30 s together join, and longer ones do not', async () => {
  const parts = (seconds: number): Heard[] => {
    const words = wordsFrom(20, ' and').concat(wordAt(' on.', 20.5, seconds));
    return [
      { words: [wordAt(' On', 0, 20)], until: 20 },
      { words, until: seconds },
    ];
  };
  assert.deepEqual(shown(await joined(...parts(30))), [[' On and on.', 0, 30]]);
  assert.deepEqual(shown(await joined(...parts(30.1))), [
    [' On', 0, 20],
    [' and on.', 20, 30.1],
  ]);
});

test('an abbreviation and an ellipsis are judged by what follows in the next chunk', async () => {
  const across = async (first: string, second: string) => {
    const words = wordsFrom(0, first);
    const until = words.at(-1)?.end ?? 0;
    const segments = await joined({ words, until }, { words: wordsFrom(until, second), until: 30 });
    return segments.map(({ text }) => text);
  };
  assert.deepEqual(await across(' I met Dr.', ' Smith.'), [' I met Dr. Smith.']);
  assert.deepEqual(await across(' Well…', ' perhaps.'), [' Well… perhaps.']);
  assert.deepEqual(await across(' Well…', ' Perhaps.'), [' Well…', ' Perhaps.']);
  assert.deepEqual(await across(' It was 1999.', ' Then came more.'), [' It was 1999.', ' Then came more.']);
});

test('figures are computed from the words, and those that only an engine knows are those of the first part', async () => {
  const first: Heard = { words: wordsFrom(10, ' eins zwei'), until: 11, noSpeechProb: 0.2, language: 'de' };
  const second: Heard = { words: wordsFrom(11, ' two.'), until: 20, noSpeechProb: 0.7, language: 'en' };
  const [segment, ...more] = await joined(first, second);
  assert.deepEqual(more, []);
  const words = [...first.words, ...second.words];
  const whole = recognition({ ...first, words }).sentences[0];
  assert.deepEqual(segment, whole);
  assert.deepEqual([segment?.seek, segment?.language, segment?.noSpeechProb], [1000, 'de', 0.2]);
});

test('a space is put between the parts where the script has one and the engine gave none', async () => {
  const across = async (first: string, second: string) => {
    const [segment] = await joined(
      { words: [wordAt(first, 0, 1)], until: 1 },
      { words: [wordAt(second, 1, 2)], until: 9 },
    );
    assert.equal(segment?.text, segment?.words.map(({ text }) => text).join(''));
    return segment?.text;
  };
  assert.equal(await across(' one', 'two'), ' one two');
  assert.equal(await across(' one', ' two'), ' one two');
  assert.equal(await across('你', '好'), '你好');
  assert.equal(await across('カ', ' two'), 'カ two');
});

/** Lists the sentences that have left when the engine is asked for each next chunk, and at the end. */
async function leaving(...heard: Heard[]): Promise<string[][]> {
  const left: string[] = [];
  const seen: string[][] = [];
  async function* asked() {
    for (const one of heard) {
      seen.push([...left]);
      yield recognition(one);
    }
    seen.push([...left]);
  }
  for await (const { text } of joinSentences(asked())) left.push(text);
  return [...seen.slice(1), left];
}

test('a finished sentence leaves at once, and one that may go on leaves when the next part is known', async () => {
  const next = { words: wordsFrom(3, ' five.'), until: 9 };
  assert.deepEqual(await leaving({ words: wordsFrom(0, ' One. Two three.'), until: 2 }, next), [
    [' One.', ' Two three.'],
    [' One.', ' Two three.', ' five.'],
    [' One.', ' Two three.', ' five.'],
  ]);
  assert.deepEqual(await leaving({ words: wordsFrom(0, ' One. Two three'), until: 3 }, next), [
    [' One.'],
    [' One.', ' Two three five.'],
    [' One.', ' Two three five.'],
  ]);
});

test('a held sentence leaves without the next part where it is known that nothing joins', async () => {
  const next = { words: wordsFrom(40, ' five.'), until: 50 };
  const held = wordsFrom(0, ' Two three');
  assert.deepEqual((await leaving({ words: held, until: 2.51 }, next))[0], [' Two three'], 'a long pause');
  const long = [wordAt(' On', 0, 29.5)];
  assert.deepEqual((await leaving({ words: long, until: 30 }, next))[0], [' On'], '30 s are over');
  // This is a chunk without any recognized words.
  const nothing = { words: [], until: 3 };
  assert.deepEqual(await leaving({ words: held, until: 1.2 }, nothing, next), [
    [],
    [' Two three'],
    [' Two three', ' five.'],
    [' Two three', ' five.'],
  ]);
});

test('a consumer that leaves closes the source', async () => {
  let closed = false;
  async function* source() {
    try {
      for (;;) yield recognition({ words: wordsFrom(0, ' One. Two'), until: 1 });
    } finally {
      closed = true;
    }
  }
  for await (const { text } of joinSentences(source())) {
    assert.equal(text, ' One.');
    break;
  }
  assert(closed);
});

test('a failure comes after all the sentences before it', async () => {
  async function* source() {
    yield recognition({ words: wordsFrom(0, ' One two'), until: 1 });
    throw new Error('broken');
  }
  const texts: string[] = [];
  await assert.rejects(async () => {
    for await (const { text } of joinSentences(source())) texts.push(text);
  }, /broken/);
  assert.deepEqual(texts, [' One two']);
});

const spoken = fc.record({
  text: fc.constantFrom(' a', ' b.', ' Mr.', ' c,', ' d?', '。', ' E', ' 3.', ' f…', ' “g.”', '字', 'h'),
  gap: fc.constantFrom(0, 0, 0, 0.3, 1.5, 1.7, 4),
  length: fc.constantFrom(0.1, 0.4, 3, 12),
  /** True where a chunk ends behind the word. */
  ends: fc.boolean(),
});

function chunksOf(list: { text: string; gap: number; length: number; ends: boolean }[]): Heard[] {
  const chunks: Heard[] = [];
  let clock = 0;
  let words: Word[] = [];
  list.forEach(({ text, gap, length, ends }, i) => {
    const start = clock + gap;
    clock = start + length;
    words.push(wordAt(text, start, clock));
    if (!ends && i < list.length - 1) return;
    const until = clock + Math.min(list[i + 1]?.gap ?? 0, 1.504);
    chunks.push({ words, until });
    words = [];
  });
  return chunks;
}

const bare = (word: Word | undefined) => word && { ...word, text: word.text.trim() };

test('no word is lost, moved or doubled, parts that join are joined, and no result is longer than 30 s', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(spoken, { maxLength: 40 }), async (list) => {
      const heard = chunksOf(list);
      const parts = heard.flatMap((one) => recognition(one).sentences);
      const segments = await joined(...heard);
      const words = segments.flatMap((segment) => segment.words);
      assert.deepEqual(words.map(bare), heard.flatMap((one) => one.words).map(bare));
      segments.forEach((segment, i) => {
        const part = parts.find(({ words: [first] }) => first?.tokens[0] === segment.words[0]?.tokens[0]);
        assert(part, 'it begins where a part begins');
        const lasts = segment.end - segment.start;
        assert(lasts <= 30 || segment.words.length === part.words.length, `${lasts} s`);
        assert.deepEqual([segment.seek, segment.start], [part.seek, part.start]);
        assert.equal(segment.text, segment.words.map(({ text }) => text).join(''));
        const before = segments[i - 1];
        const last = before?.words.at(-1);
        const [first] = segment.words;
        if (before === undefined || last === undefined || first === undefined) return;
        const end = part.end;
        assert(endsSentence(last, first) || end - before.start > 30, `${before.text} |${segment.text}`);
      });
    }),
    { numRuns: 500 },
  );
});

test('the cuts between chunks do not show, as long as no sentence is longer than 30 s', async () => {
  const short = spoken.map((word) => ({ ...word, length: Math.min(word.length, 0.4) }));
  await fc.assert(
    fc.asyncProperty(fc.array(short, { maxLength: 40 }), async (list) => {
      const whole = toSentences(chunksOf(list.map((word) => ({ ...word, ends: false })))[0]?.words ?? []);
      fc.pre(whole.every((words) => (words.at(-1)?.end ?? 0) - (words[0]?.start ?? 0) < 30));
      const segments = await joined(...chunksOf(list));
      assert.deepEqual(
        segments.map(({ words }) => words.length),
        whole.map((words) => words.length),
      );
    }),
    { numRuns: 300 },
  );
});

test('a finished sentence stays finished before every word that follows within a short pause', () => {
  const texts = fc.oneof(
    fc.constantFrom(
      ' No.',
      ' Dr.',
      ' etc.',
      ' 3.',
      ' J.',
      ' I.',
      ' “Stop!”',
      ' Well…',
      '吗？',
      '好。」',
      ' yes',
    ),
    fc.string({ maxLength: 5 }).map((text) => `${text}.`),
  );
  // Closing marks by themselves are no word: they belong to the sentence before.
  const words = fc.string().filter((text) => !/^\s*["'\p{Pe}\p{Pf}]+$/u.test(text));
  const follows = fc.oneof(fc.constantFrom(' he', ' Smith', ' 5', ' Mai', ' “and', '字'), words);
  fc.assert(
    fc.property(texts, follows, (text, next) => {
      const word = wordAt(text, 0, 1);
      if (isFinished(word)) assert(endsSentence(word, wordAt(next, 1, 2)), `${text} |${next}`);
    }),
  );
  const finished = [' No.', ' yes!', '吗？', ' Well…', ' Dr.', ' 3.', ' “Stop!”', ' yes'];
  assert.deepEqual(
    finished.map((text) => isFinished(wordAt(text, 0, 1))),
    [true, true, true, false, false, false, false, false],
  );
});

test('the parts of a sentence get a space between them only, and control tokens do not count', () => {
  const part = (words: Word[]) => {
    const [segment] = toSegments([words], { startSec: 0 } as Chunk, {} as never);
    assert(segment);
    return segment;
  };
  const control = { id: 1, bytes: Buffer.alloc(0), logprob: -9 };
  const token = (text: string) => ({ id: 2, bytes: Buffer.from(text), logprob: -0.5 });
  const word = (text: string, start: number): Word => ({
    text,
    start,
    end: start + 1,
    tokens: [token(text), control],
  });
  const whole = joinParts(
    part([word(' One', 0), word(' two', 1)]),
    part([word('three', 2), word('-four.', 3)]),
  );
  assert.equal(whole.text, ' One two three-four.');
  assert.deepEqual(
    whole.words.map(({ text }) => text),
    [' One', ' two', ' three', '-four.'],
  );
  assert.equal(whole.avgLogprob, -0.5);
});
