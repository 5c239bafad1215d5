/** A scripted model of the Whisper family: what is tried again, and what is never taken for a text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ChunkOptions, type Lane, NativeError, type NativeErrorCode } from '../../src/engine/types.ts';
import { NO_EARLIER_CHUNKS } from '../../src/transcription/recognizer.ts';
import { recognizer as whisper } from '../../src/transcription/whisper/recognizer.ts';
import { chunkRequest } from '../chunk-request.ts';

const chunk = {
  startSec: 0,
  endSec: 5,
  silentUntilSec: 5,
  samples: new Float32Array(5 * 16000),
  speech: [],
};
const request = chunkRequest({
  language: 'en',
  languages: ['en'],
});

const said = [' ask', ' not', ' what', ' your', ' country'].map((text, id) => ({
  id,
  bytes: Buffer.from(text),
  logprob: -0.1,
  startMs: id * 500,
  endMs: (id + 1) * 500,
}));

/** A lane that fails with these codes, one for each attempt, and hears the text after them. */
function laneOf(failures: NativeErrorCode[]) {
  const asked: ChunkOptions[] = [];
  const lane = {
    info: { languages: ['en'], audioContext: 1500, textContext: 448 },
    transcribe: async (_samples: Float32Array, options: ChunkOptions) => {
      const code = failures[asked.length];
      asked.push(options);
      if (code !== undefined) throw new NativeError(code, 'scripted');
      return [{ startMs: 0, endMs: 2500, tokens: said, noSpeechProb: 0 }];
    },
  };
  return { lane: lane as unknown as Lane, asked };
}

const recognize = (lane: Lane) => whisper.recognize(lane, chunk, request);
const textOf = ({ sentences }: Awaited<ReturnType<typeof recognize>>) =>
  sentences.map(({ text }) => text).join('');

test('a text that stopped before the end of the audio is decoded again in the next way', async () => {
  const { lane, asked } = laneOf(['incomplete', 'incomplete']);
  assert.equal(textOf(await recognize(lane)).trim(), 'ask not what your country');
  assert.deepEqual(
    asked.map(({ temperature, audioContext }) => [temperature, audioContext > 0]),
    [
      [0, true],
      [0, true],
      [0, false],
    ],
  );
});

test('a text that stops before the end of the audio in every way is a failure', async () => {
  const { lane, asked } = laneOf(Array(20).fill('incomplete'));
  await assert.rejects(recognize(lane), { name: 'NativeError', code: 'incomplete' });
  assert.equal(asked.length, 3);
});

test('a model that repeats itself is asked in the next way, and at last the speech is dropped', async () => {
  const once = laneOf(['repetition']);
  assert.equal(textOf(await recognize(once.lane)).trim(), 'ask not what your country');
  assert.equal(once.asked.length, 2);
  const always = laneOf(Array(20).fill('repetition'));
  const { sentences, dropped } = await recognize(always.lane);
  assert.deepEqual([sentences, dropped?.map(({ reason }) => reason)], [[], ['repetition']]);
  assert.equal(always.asked.length, 3);
});

test('another attempt that writes nothing does not make a sure text silence', async () => {
  for (const [logprob, expected] of [
    [-0.2, 'Yes.'],
    [-4, ''],
  ] as const) {
    const tokens = [{ id: 0, bytes: Buffer.from(' Yes.'), logprob, startMs: 0, endMs: 500 }];
    const asked: boolean[] = [];
    const lane = {
      info: { languages: ['en'], audioContext: 1500, textContext: 448 },
      transcribe: async (_samples: Float32Array, { times }: ChunkOptions) => {
        asked.push(times);
        return [{ startMs: 0, endMs: 500, tokens: times ? [] : tokens, noSpeechProb: 0.1 }];
      },
    };
    const speech = [{ startSec: 0, endSec: 5, certainty: 0.9 }];
    const heard = await whisper.recognize(lane as unknown as Lane, { ...chunk, speech }, request);
    assert.deepEqual([textOf(heard).trim(), asked], [expected, [false, true]]);
  }
});

test('another failure of the engine is not tried again', async () => {
  const { lane, asked } = laneOf(['inference_failed']);
  await assert.rejects(recognize(lane), { name: 'NativeError', code: 'inference_failed' });
  assert.equal(asked.length, 1);
});

test('each call may use what was encoded for the one before, which the engine does for the same audio only', async () => {
  const { lane, asked } = laneOf(['incomplete']);
  await recognize(lane);
  assert(asked.length === 2 && asked.every(({ again }) => again));
});

test('a text in doubt is looked at again in the call that found it, unless the request wants one beam', async () => {
  for (const [beams, expected] of [
    [4, 4],
    [1, undefined],
  ] as const) {
    const { lane, asked } = laneOf([]);
    await whisper.recognize(lane, chunk, { ...request, beams });
    assert.deepEqual(
      asked.map(({ doubt }) => doubt?.beams),
      [expected],
    );
  }
});

test('a text that hardly ends where it does is no surer than one with all words', async () => {
  const withEnd = (count: number, logprob: number, endLogprob: number) => {
    const tokens = said.slice(0, count).map((token) => ({ ...token, logprob }));
    return [{ startMs: 0, endMs: 5000, tokens, noSpeechProb: 0, endLogprob }];
  };
  const lane = {
    info: { languages: ['en'], audioContext: 1500, textContext: 448 },
    transcribe: async (_samples: Float32Array, { beams }: ChunkOptions) =>
      beams === 1 ? withEnd(5, -1.3, -0.1) : withEnd(2, -1.1, -4),
  };
  const result = await whisper.recognize(lane as unknown as Lane, chunk, { ...request, beams: 5 });
  assert.equal(textOf(result).trim(), 'ask not what your country');
});

/** Two spans of 2 s each, in one chunk. */
const twice = {
  ...chunk,
  startSec: 10,
  endSec: 15,
  speech: [
    { startSec: 10, endSec: 12, certainty: 1 },
    { startSec: 13, endSec: 15, certainty: 1 },
  ],
};

/** What a lane hears where it fails, because the model repeats itself. */
const LOOP = 'loop';

/**
 * A lane that hears `together` in the whole chunk, and in its parts the texts of `apart` in turns. The words of a text
 * that it aligns share the first `alignedSec` evenly.
 */
function partsLane(together: string, apart: string[], alignedSec = 2) {
  const asked: number[] = [];
  const beams: number[] = [];
  const aligned: ChunkOptions[] = [];
  let parts = 0;
  const lane = {
    info: { languages: ['en'], audioContext: 1500, textContext: 448 },
    transcribe: async (samples: Float32Array, options: ChunkOptions) => {
      const sec = samples.length / 16_000;
      if (options.text !== undefined) {
        aligned.push(options);
        return segmentsOf(options.text, sec, alignedSec);
      }
      asked.push(sec);
      beams.push(options.doubt?.beams ?? options.beams);
      const text = sec > 4 ? together : (apart[parts++ % apart.length] ?? '');
      if (text === LOOP) throw new NativeError('repetition', 'scripted');
      return segmentsOf(text, sec, sec, sec > 4 ? -0.1 : -0.5); // the text of a part is in doubt
    },
  };
  return { lane: lane as unknown as Lane, asked, beams, aligned };
}

function segmentsOf(text: string, sec: number, saidSec: number, logprob = -0.1) {
  const pieces = text.split(/(?= )/);
  const at = (place: number) => Math.round((1000 * saidSec * place) / pieces.length);
  const tokens = pieces.map((piece, id) => ({
    id,
    bytes: Buffer.from(piece),
    logprob,
    startMs: at(id),
    endMs: at(id + 1),
  }));
  return [{ startMs: 0, endMs: 1000 * sec, tokens, noSpeechProb: 0 }];
}

test('a sentence that is said twice in a chunk, and written once, is heard in each span by itself', async () => {
  const sentence = ' Ask what you can do.';
  const { lane, asked } = partsLane(sentence, [sentence]);
  const { sentences } = await whisper.recognize(lane, twice, { ...request, timed: true });
  assert.deepEqual(asked, [5, 2, 2]);
  assert.deepEqual(
    sentences.map(({ text, start }) => [text.trim(), Math.floor(start)]),
    [
      [sentence.trim(), 10],
      [sentence.trim(), 13],
    ],
  );
});

test('spans that are heard by themselves keep their times where the pause between them was cut', async () => {
  const [first, second] = [twice.speech[0], { startSec: 18, endSec: 20, certainty: 1 }];
  const cut = { ...twice, endSec: 20, speech: [first, second].filter((span) => span !== undefined) };
  const { lane, asked } = partsLane(' Ask', [' Ask what you can do.', ' [Music]']);
  const timed = { ...request, timed: true };
  const { sentences, dropped } = await whisper.recognize(
    lane,
    { ...cut, cuts: [{ atSec: 2.5, sec: 5 }] },
    timed,
  );
  assert.deepEqual(asked, [5, 2, 2]);
  assert(sentences.length === 1 && (sentences[0]?.end ?? 0) <= 12);
  assert.deepEqual(dropped, [{ start: 18, end: 20, reason: 'no_text' }]);
});

test('a single span with a short text is heard between its pauses', async () => {
  const samples = Float32Array.from({ length: 5 * 16_000 }, (_, i) =>
    Math.abs(i / 16_000 - 2.5) < 0.2 ? 0 : 0.3 * Math.sin(i / 8),
  );
  const span = { ...twice, samples, speech: [{ startSec: 10, endSec: 15, certainty: 1 }] };
  const { lane, asked } = partsLane(' Ask', [' Ask what you can do.']);
  const { sentences } = await whisper.recognize(lane, span, { ...request, timed: true });
  assert.deepEqual(asked, [5, 5, 2.5, 2.5]); // the whole is tried again before
  assert.deepEqual(
    sentences.map(({ text }) => text.trim()),
    ['Ask what you can do.', 'Ask what you can do.'],
  );
});

test('a short text with words in all of the speech is decoded once, in every task', async () => {
  const slow = ' Ask what you can do for all of us and for me.'; // 12 syllables in 4 s
  const { lane, asked, aligned } = partsLane(slow, [slow], 5);
  for (const translate of [false, true]) {
    const { completePace } = await whisper.recognize(lane, twice, { ...request, translate });
    assert.equal(completePace, 3);
  }
  assert.deepEqual(asked, [5, 5]);
  assert.deepEqual(
    aligned.map(({ text, language, translate, again }) => [text, language, translate, again]),
    [false, true].map((translate) => [slow, 'en', translate, true]),
  );
});

test('a text that is too long to be aligned is no failure', async () => {
  const { lane, asked } = partsLane(' Ask', [' Ask what you can do.']);
  const { transcribe } = lane;
  const failing: Lane['transcribe'] = async (samples, options) => {
    if (options.text !== undefined) throw new NativeError('text_too_long', 'scripted');
    return transcribe(samples, options);
  };
  const { sentences } = await whisper.recognize({ ...lane, transcribe: failing }, twice, request);
  assert.deepEqual([sentences.length, asked], [2, [5, 2, 2]]);
});

test('speech without words is decoded by itself only where it can be heard for a second', async () => {
  for (const [heardSec, expected] of [
    [0.8, [5]],
    [1.2, [5, 2, 2]],
  ] as const) {
    const samples = Float32Array.from({ length: 5 * 16_000 }, (_, i) =>
      i > 16_000 * (3 + heardSec) ? 0 : 0.3 * Math.sin(i / 8),
    );
    const { lane, asked } = partsLane(' Ask what you can do.', [' Ask what you can do.']);
    await whisper.recognize(lane, { ...twice, samples }, request);
    assert.deepEqual(asked, expected);
  }
});

test('a span that has no words when it is heard by itself is named', async () => {
  const { lane } = partsLane(' Ask', [' Ask what you can do.', ' [Music]']);
  const { sentences, dropped } = await whisper.recognize(lane, twice, request);
  assert.equal(sentences.length, 1);
  assert.deepEqual(dropped, [{ start: 13, end: 15, reason: 'no_text' }]);
});

test('a short text stays where the spans by themselves have no more', async () => {
  const { lane, asked } = partsLane(' Ask what you can do.', [' Ask']);
  assert.equal(textOf(await whisper.recognize(lane, twice, request)).trim(), 'Ask what you can do.');
  assert.deepEqual(asked, [5, 2, 2]);
});

test('spans are looked at once, and each again with beams only where they have more text together', async () => {
  const doubtful = { ...request, beams: 4 };
  const [none, more] = [
    partsLane(' Ask what you can do.', [' Ask']),
    partsLane(' Ask', [' Ask what you can.']),
  ];
  await whisper.recognize(none.lane, twice, doubtful);
  // What both are in together has its second look in the same call.
  assert.deepEqual(none.beams, [4, 1, 1]);
  const { sentences } = await whisper.recognize(more.lane, twice, doubtful);
  assert.deepEqual(more.beams, [4, 1, 1, 4, 4]);
  assert.equal(sentences.length, 2);
});

test('a span in which the first look hears a loop may have more text, so that all are heard in full', async () => {
  const { lane, beams } = partsLane(' Ask what you can do.', [' Ask', LOOP, ' do what you can for me.']);
  const { sentences } = await whisper.recognize(lane, twice, request);
  assert.deepEqual(beams.slice(3), [request.beams]);
  assert.equal(sentences.map(({ text }) => text).join(''), ' Ask do what you can for me.');
});

test('who speaks slowly is heard apart once, and not again at the same pace', async () => {
  const slow = ' Ask what you can do for America.'; // 10 syllables in 4 s
  const { lane, asked } = partsLane(slow, [' Ask what']);
  const first = await whisper.recognize(lane, twice, request);
  assert.equal(first.completePace, 2.5);
  assert.deepEqual(asked, [5, 2, 2]);
  const knowing = (slowestPace: number) => ({
    ...request,
    before: async () => ({ ...NO_EARLIER_CHUNKS, slowestPace }),
  });
  asked.length = 0;
  await whisper.recognize(lane, twice, knowing(2.6));
  assert.deepEqual(asked, [5]);
  asked.length = 0;
  await whisper.recognize(lane, twice, knowing(2.9));
  assert.deepEqual(asked, [5, 2, 2], 'slower than anyone before');
});

test('a text too short for any speaker tells nothing of the pace', async () => {
  const { lane } = partsLane(' Ask what you can do.', [' Ask']);
  assert.equal((await whisper.recognize(lane, twice, request)).completePace, undefined);
});

test('a text as long as its speech is heard once', async () => {
  const { lane, asked } = partsLane(
    ' Ask what you can do, and ask it of your country, my fellow Americans.',
    [' no'],
  );
  await whisper.recognize(lane, twice, request);
  assert.deepEqual(asked, [5]);
});

test('a text in doubt of loud audio that is hardly speech is silence, and nothing of it is dropped', async () => {
  const lane = {
    info: { languages: ['en'], audioContext: 1500, textContext: 448 },
    transcribe: async () => [{ startMs: 0, endMs: 2500, tokens: said, noSpeechProb: 0.45 }],
  } as unknown as Lane;
  const samples = new Float32Array(5 * 16_000).fill(0.1);
  for (const [certainty, text] of [
    [0.7, ''],
    [0.97, 'ask not what your country'],
  ] as const) {
    const loud = { ...chunk, samples, speech: [{ startSec: 0, endSec: 2, certainty }] };
    const recognition = await whisper.recognize(lane, loud, request);
    assert.equal(textOf(recognition).trim(), text);
    assert.equal(recognition.dropped, undefined);
  }
});

test('a text that repeats itself is timed, also where no times are shown, and copies without time are dropped', async () => {
  const tokens = (ms: number) =>
    [' press', ' one', ' please', ' press', ' one', ' please'].map((text, id) => ({
      id,
      bytes: Buffer.from(text),
      logprob: -0.1,
      startMs: Math.min(id, 3) * 500 + Math.max(0, id - 3) * ms,
      endMs: Math.min(id + 1, 3) * 500 + Math.max(0, id - 2) * ms,
    }));
  const heard = async (ms: number, timed: boolean, text = tokens(ms)) => {
    const asked: boolean[] = [];
    const transcribe = async (_samples: Float32Array, { words }: ChunkOptions) => {
      asked.push(words);
      const times = words ? text : text.map((token) => ({ ...token, startMs: 0, endMs: 0 }));
      return [{ startMs: 0, endMs: 2500, tokens: times, noSpeechProb: 0 }];
    };
    const info = { languages: ['en'], audioContext: 1500, textContext: 448 };
    const result = await whisper.recognize({ info, transcribe } as unknown as Lane, chunk, {
      ...request,
      timed,
    });
    return { text: textOf(result).trim(), asked, dropped: result.dropped?.map(({ reason }) => reason) };
  };
  const [once, twice] = ['press one please', 'press one please press one please'];
  assert.deepEqual(await heard(2, true), { text: once, asked: [true], dropped: ['repetition'] });
  assert.deepEqual(await heard(2, false), { text: once, asked: [false, true], dropped: ['repetition'] });
  assert.deepEqual(await heard(300, false), { text: twice, asked: [false, true], dropped: undefined });
  assert.deepEqual((await heard(0, false, said)).asked, [false]);
});
