/** A scripted model of the Whisper family: what is tried again, and what is never taken for a text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ChunkOptions, type Lane, NativeError, type NativeErrorCode } from '../../src/engine/types.ts';
import type { ChunkRequest } from '../../src/transcription/recognizers/recognizer.ts';
import { recognizer as whisper } from '../../src/transcription/recognizers/whisper.ts';

const chunk = {
  startSec: 0,
  endSec: 5,
  silentUntilSec: 5,
  samples: new Float32Array(5 * 16000),
  speech: [],
};
const request: ChunkRequest = {
  language: 'en',
  languages: ['en'],
  before: async () => null,
  translate: false,
  prompt: '',
  beams: 1,
  temperature: 0,
  timed: false,
  signal: new AbortController().signal,
};

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
      [0, false],
      [0.2, false],
    ],
  );
});

test('a text that stops before the end of the audio in every way is a failure', async () => {
  const { lane, asked } = laneOf(Array(20).fill('incomplete'));
  await assert.rejects(recognize(lane), { name: 'NativeError', code: 'incomplete' });
  assert.equal(asked.length, 7);
});

test('another failure of the engine is not tried again', async () => {
  const { lane, asked } = laneOf(['inference_failed']);
  await assert.rejects(recognize(lane), { name: 'NativeError', code: 'inference_failed' });
  assert.equal(asked.length, 1);
});

/** A lane that is unsure of one token when it decodes greedily, and hears `better` with beams. */
function unsureLane(better: { text: string; logprob: number }) {
  const asked: number[] = [];
  const lane = {
    info: { languages: ['en'], audioContext: 1500, textContext: 448 },
    transcribe: async (_samples: Float32Array, { beams }: ChunkOptions) => {
      asked.push(beams);
      const greedy = said.map((token, i) => (i === 2 ? { ...token, logprob: -1.5 } : token));
      const tokens = said.map((token) => ({ ...token, logprob: better.logprob }));
      tokens[2] = {
        ...said[2],
        bytes: Buffer.from(better.text),
        logprob: better.logprob,
      } as (typeof said)[0];
      return [{ startMs: 0, endMs: 2500, tokens: beams > 1 ? tokens : greedy, noSpeechProb: 0 }];
    },
  };
  return { lane: lane as unknown as Lane, asked };
}

test('a text with an improbable token is decoded again with beams, and the more probable text is taken', async () => {
  for (const [logprob, expected] of [
    [-0.2, 'ask not which your country'],
    [-0.9, 'ask not what your country'],
  ] as const) {
    const { lane, asked } = unsureLane({ text: ' which', logprob });
    const heard = await whisper.recognize(lane, chunk, { ...request, beams: 4 });
    assert.equal(textOf(heard).trim(), expected);
    assert.deepEqual(asked, [1, 4]);
  }
});

test('only another look at the same audio may use what was encoded for it', async () => {
  const { lane, asked } = laneOf(['incomplete']);
  await recognize(lane);
  assert.deepEqual(
    asked.map(({ again }) => again),
    [false, true],
  );
});

test('a request for one beam is decoded greedily, however unsure the text is', async () => {
  const { lane, asked } = unsureLane({ text: ' which', logprob: -0.1 });
  assert.equal(textOf(await recognize(lane)).trim(), 'ask not what your country');
  assert.deepEqual(asked, [1]);
});
