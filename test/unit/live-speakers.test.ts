/** The speakers of a live session, over scripted conversations that last for long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ModelCache } from '../../src/engine/cache.ts';
import type { SpeakerModel } from '../../src/engine/types.ts';
import { createLiveSpeakers } from '../../src/transcription/live/live-speakers.ts';
import type { Segment } from '../../src/transcription/segment.ts';
import { createOnlineDiarization } from '../../src/transcription/speakers/online.ts';
import { conversation, scriptedVoices } from '../voices.ts';

const COUNT = { min: 1, max: 20 };
const never = new AbortController().signal;

function cacheOf(model: SpeakerModel) {
  const leases = { open: 0 };
  const lease = async () => {
    leases.open += 1;
    return {
      model,
      async [Symbol.asyncDispose]() {
        leases.open -= 1;
      },
    };
  };
  return { leases, cache: { lease } as unknown as ModelCache<SpeakerModel> };
}

/** A segment from 0 with a word for each second. */
function segmentOf(seconds: number): Segment {
  const words = Array.from({ length: seconds }, (_, i) => ({
    text: ` w${i}`,
    start: i,
    end: i + 0.9,
    tokens: [],
  }));
  const measures = { seek: 0, temperature: 0, avgLogprob: 0, compressionRatio: 1, noSpeechProb: 0 };
  const text = words.map((word) => word.text).join('');
  return { id: 0, start: 0, end: seconds, text, words, language: 'en', ...measures };
}

test('a speaker keeps the label over hundreds of utterances, and the last ones cost what the first ones did', async () => {
  const model = scriptedVoices();
  const { cache, leases } = cacheOf(model);
  const label = createLiveSpeakers(cache, COUNT);
  const utterances = 300;
  const windows: number[] = [];
  for (let i = 0; i < utterances; i += 1) {
    const before = model.calls.windows;
    const audio = conversation([{ speaker: i % 3, start: 0, end: 4 }], 4);
    const parts = await label(audio, [segmentOf(4)], never);
    windows.push(model.calls.windows - before);
    assert.deepEqual(
      parts.map(({ speaker }) => speaker),
      ['ABC'[i % 3]],
      `utterance ${i}`,
    );
    assert.equal(leases.open, 0, 'the model is not kept between utterances');
  }
  assert(Math.max(...windows) <= 4, `${Math.max(...windows)} windows for 4 s`);
});

test('an utterance that fails or is stopped takes nothing from the next one', async () => {
  const model = scriptedVoices();
  let isBroken = false;
  const { cache, leases } = cacheOf({
    ...model,
    embeddings: (...args) => {
      if (isBroken) throw new Error('no memory now');
      args[2]?.signal?.throwIfAborted();
      return model.embeddings(...args);
    },
  });
  const label = createLiveSpeakers(cache, COUNT);
  const say = async (speaker: number, signal = never) => {
    const audio = conversation([{ speaker, start: 0, end: 5 }], 5);
    const parts = await label(audio, [segmentOf(5)], signal);
    return parts.map((part) => part.speaker).join('');
  };
  assert.equal(await say(0), 'A');
  isBroken = true;
  await assert.rejects(say(1), /no memory now/);
  isBroken = false;
  await assert.rejects(say(1, AbortSignal.abort(new Error('left'))), /left/);
  assert.equal(leases.open, 0);
  assert.equal(await say(1), 'B');
  assert.equal(await say(0), 'A');
});

test('a stream lets go of the turns that nobody asks for any more', async () => {
  const options = { clustering: { count: COUNT, maxPoints: 256 }, known: [], signal: never };
  const diarization = createOnlineDiarization(scriptedVoices(), options);
  await diarization.push(conversation([{ speaker: 0, start: 0, end: 10 }], 15));
  assert.equal((await diarization.turnsBetween(0, 15)).length, 1);
  await diarization.push(conversation([{ speaker: 1, start: 0, end: 10 }], 10));
  diarization.forget(14);
  const turns = await diarization.turnsBetween(0, 25);
  assert.deepEqual(
    turns.map(({ speaker }) => speaker),
    ['B'],
  );
});
