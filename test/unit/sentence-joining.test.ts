/** Sentences go on in the next chunk: these tests say what joins, what is recomputed, and when each leaves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ChunkRecognition } from '../../src/transcription/lanes.ts';
import type { UnnumberedSegment, Word } from '../../src/transcription/segment.ts';
import { joinParts, toSegments } from '../../src/transcription/segment.ts';
import type { Chunk } from '../../src/transcription/speech/chunks.ts';
import { joinSentences } from '../../src/transcription/text/sentence-joining.ts';
import { endsSentence, hasEndMark, isFinished, toSentences } from '../../src/transcription/text/sentences.ts';

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

test('a sentence is one segment whatever pauses it has', async () => {
  const parts = (pause: number): Heard[] => [
    { words: wordsFrom(0, ' And so my fellow Americans'), until: 2.5 + Math.min(pause, 1.6) },
    { words: wordsFrom(2.5 + pause, ' ask not. What'), until: 5 + pause },
    { words: wordsFrom(20 + pause, ' then?'), until: 30 + pause },
  ];
  for (const pause of [0.3, 1.5, 1.6, 4, 26])
    assert.deepEqual(shown(await joined(...parts(pause))), [
      [' And so my fellow Americans ask not.', 0, 3.5 + pause],
      [' What then?', 3.5 + pause, 20.5 + pause],
    ]);
  const within = wordsFrom(0, ' One two').concat(wordsFrom(9, ' three. Four.'));
  assert.deepEqual(shown(await joined({ words: within, until: 20 })), [
    [' One two three.', 0, 9.5],
    [' Four.', 9.5, 10],
  ]);
});

/** Makes each text a chunk, with a pause of 3 s behind it. */
const withPauses = (...texts: string[]): Heard[] => {
  let clock = 0;
  return texts.map((text) => {
    const words = wordsFrom(clock, text);
    const end = words.at(-1)?.end ?? clock;
    clock = end + 3;
    return { words, until: end + 1.504 };
  });
};

test('text without marks is cut at its long pauses, unless the writing shows that it goes on', async () => {
  const texts = async (...all: string[]) => (await joined(...withPauses(...all))).map(({ text }) => text);
  assert.deepEqual(await texts(' hello there', ' hello', ' hello'), [' hello there', ' hello', ' hello']);
  assert.deepEqual(await texts('你好', '你好'), ['你好', '你好']);
  assert.deepEqual(await texts(' hello,', ' hello', ' hello'), [' hello, hello', ' hello']);
  assert.deepEqual(await texts(' I love', ' you so', ' You know'), [' I love you so', ' You know']);
  assert.deepEqual(await texts(' One. Two', ' three'), [' One.', ' Two three'], 'the writing has marks');
});

test('where there is no mark for 30 s, pauses cut from then on, until there are marks again', async () => {
  const line = ' la la la la la la';
  const song = withPauses(...Array(8).fill(line), ' This is it.', ' And so', ' on.');
  assert.deepEqual(
    (await joined(...song)).map(({ text }) => text),
    [...Array(8).fill(line), ' This is it.', ' And so on.'],
  );
  // The sixth line ends the wait, and each later one leaves when its pause is over.
  const left = (await leaving(...song)).map((texts) => texts.length);
  assert.deepEqual(left, [0, 0, 0, 0, 0, 6, 7, 8, 9, 9, 10, 10]);
});

test('a sentence over 30 s is cut at its widest pause, not at each', async () => {
  const long = (start: number): Word[] =>
    Array.from({ length: 20 }, (_, i) => wordAt(' and', start + i / 2, start + (i + 1) / 2));
  const segments = await joined(
    { words: wordsFrom(0, ' Before.'), until: 1 },
    { words: long(1), until: 12.5 },
    { words: long(13), until: 24.5 },
    { words: long(26).concat(wordAt(' on.', 36, 36.5)), until: 40 },
  );
  assert.deepEqual(
    segments.map(({ start, end }) => [start, end]),
    [
      [0, 0.5],
      [1, 23],
      [26, 36.5],
    ],
  );
});

test('no sentence spans a long pause between two languages, or speech of which there is no text', async () => {
  const parts = (second: Partial<Heard>): Heard[] => [
    { words: wordsFrom(0, ' One two'), until: 2.6 },
    { words: wordsFrom(5, ' drei.'), until: 9, ...second },
  ];
  assert.equal((await joined(...parts({}))).length, 1);
  assert.equal((await joined(...parts({ language: 'de' }))).length, 2);
  const [first, second] = parts({}).map(recognition);
  assert(first && second);
  const without = (end: number) => [{ start: 2.6, end, reason: 'no_text' as const }];
  for (const [endSec, count] of [
    [3, 1],
    [4.5, 2],
  ] as const) {
    const inFirst = [{ ...first, dropped: without(endSec) }, second];
    const between = [first, { ...first, sentences: [], dropped: without(endSec) }, second];
    const inSecond = [first, { ...second, dropped: without(endSec) }];
    for (const heard of [inFirst, between, inSecond]) {
      const segments: UnnumberedSegment[] = [];
      async function* source() {
        yield* heard;
      }
      for await (const segment of joinSentences(source())) segments.push(segment);
      assert.equal(segments.length, count);
    }
  }
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

test('a sentence that may go on is held over chunks without words, and leaves when the next part is known', async () => {
  const held = wordsFrom(0, ' Two three');
  const nothing = { words: [], until: 3 };
  assert.deepEqual(
    await leaving({ words: held, until: 1.2 }, nothing, { words: wordsFrom(40, ' Five.'), until: 50 }),
    [[], [], [' Two three', ' Five.'], [' Two three', ' Five.']],
  );
  assert.deepEqual(
    await leaving({ words: held, until: 1.2 }, nothing, { words: wordsFrom(20, ' five.'), until: 50 }),
    [[], [], [' Two three five.'], [' Two three five.']],
  );
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

/** Splits words only where a mark ends a sentence. */
function runsOf(words: Word[]): Word[][] {
  const runs: Word[][] = [];
  words.forEach((word, i) => {
    const before = words[i - 1];
    if (before === undefined || endsSentence(before, word)) runs.push([]);
    runs.at(-1)?.push(word);
  });
  return runs;
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
      segments.forEach((segment) => {
        const part = parts.find(({ words: [first] }) => first?.tokens[0] === segment.words[0]?.tokens[0]);
        assert(part, 'it begins where a part begins');
        const lasts = segment.end - segment.start;
        assert(lasts <= 30 || segment.words.length === part.words.length, `${lasts} s`);
        assert.deepEqual([segment.seek, segment.start], [part.seek, part.start]);
        assert.equal(segment.text, segment.words.map(({ text }) => text).join(''));
      });
      // What ends with a mark within 30 s is a sentence, and none goes on behind its end.
      const ends = new Set(segments.map(({ words }) => words.at(-1)?.tokens[0]));
      for (const run of runsOf(words)) {
        const [first, last] = [run[0], run.at(-1)];
        assert(first && last);
        assert(last === words.at(-1) || ends.has(last.tokens[0]));
        if (last.end - first.start > 30 || !hasEndMark(last)) continue;
        assert.equal(run.filter(({ tokens: [token] }) => ends.has(token)).length, 1, JSON.stringify(run));
      }
    }),
    { numRuns: 500 },
  );
});

test('the cuts between chunks do not show, as long as no sentence is longer than 30 s', async () => {
  const short = spoken.map((word) => ({ ...word, length: Math.min(word.length, 0.4) }));
  await fc.assert(
    fc.asyncProperty(fc.array(short, { maxLength: 40 }), async (list) => {
      const [whole] = chunksOf(list.map((word) => ({ ...word, ends: false })));
      const lasts = (words: Word[]) => (words.at(-1)?.end ?? 0) - (words[0]?.start ?? 0);
      fc.pre(runsOf(whole?.words ?? []).every((words) => lasts(words) < 30));
      const segments = await joined(...chunksOf(list));
      assert.deepEqual(
        segments.map(({ words }) => words.length),
        (await joined(...(whole ? [whole] : []))).map(({ words }) => words.length),
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
