/** A decoded chunk is believed, or tried again in a certain order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  attemptsFor,
  compressionRatio,
  contextFor,
  isInDoubt,
  isLoop,
  judge,
} from '../../src/transcription/decoding.ts';

const good = {
  text: 'ask not what your country can do for you',
  avgLogprob: -0.1,
  noSpeechProb: 0.1,
  tokens: 10,
};
const model = { audioContext: 1500, textContext: 448 };
const first = { temperature: 0, audioContext: 640, maxTokens: 100, beams: 1, times: false };

test("the encoder window covers the clip, the margin and the floor, and is never larger than the model's", () => {
  assert.equal(contextFor(0.1, 1500), 320);
  assert.equal(contextFor(2.9, 1500), 320);
  assert.equal(contextFor(11, 1500), 640);
  assert.equal(contextFor(27, 1500), 1472);
  assert.equal(contextFor(29, 1500), 0);
  for (let sec = 0.1; sec < 30; sec += 0.1) {
    const context = contextFor(sec, 1500) || 1500;
    assert(context * 0.02 >= Math.min(30, sec + 1.5) - 1e-9 && context <= 1500);
  }
});

test('greedy decoding falls back to beams and times at its own window first, then to the full window', () => {
  const doubt = { least: -1, sure: -0.15, beams: 5 };
  const second = { temperature: 0, audioContext: 384, maxTokens: 0, beams: 5, times: true };
  assert.deepEqual(attemptsFor(5, model, { temperature: 0, beams: 5 }), [
    { temperature: 0, audioContext: 384, maxTokens: 94, beams: 1, times: false, doubt },
    second,
    { ...second, audioContext: 0 },
  ]);
  assert.equal(
    attemptsFor(29.5, model, { temperature: 0, beams: 5 }).length,
    2,
    'its own is the full window',
  );
});

test('a temperature that the client chose is kept', () => {
  const attempts = attemptsFor(5, model, { temperature: 0.7, beams: 1 });
  assert.deepEqual(
    attempts.map((a) => a.temperature),
    [0.7, 0.7, 0.7],
  );
});

test('a text as long as the decoder can write is not the whole of a long clip', () => {
  const [greedy] = attemptsFor(29.5, model, { temperature: 0, beams: 1 });
  assert(greedy?.audioContext === 0 && greedy.maxTokens === 221);
  assert.equal(judge({ ...good, tokens: 221 }, greedy, { durationSec: 29.5, speechSec: 0 }), 'retry');
});

test('a result is believed, retried or taken for silence by its figures', () => {
  assert.equal(judge(good, first, { durationSec: 5, speechSec: 0 }), 'accept');
  assert.equal(judge({ ...good, avgLogprob: -1.2 }, first, { durationSec: 5, speechSec: 0 }), 'retry');
  assert.equal(
    judge({ ...good, avgLogprob: -1.2, noSpeechProb: 0.9 }, first, { durationSec: 5, speechSec: 0 }),
    'silence',
  );
  assert.equal(judge({ ...good, noSpeechProb: 0.9 }, first, { durationSec: 5, speechSec: 0 }), 'accept');
  assert.equal(judge({ ...good, tokens: 100 }, first, { durationSec: 5, speechSec: 0 }), 'retry');
  assert.equal(
    judge({ ...good, tokens: 100 }, { ...first, maxTokens: 0 }, { durationSec: 5, speechSec: 0 }),
    'accept',
  );
  assert.equal(
    judge({ ...good, text: 'thank you. '.repeat(30) }, first, { durationSec: 5, speechSec: 0 }),
    'retry',
  );
});

test('a text that is far too short for its speech is decoded again, unless the decoder wrote times', () => {
  const spoken = { durationSec: 15.4, speechSec: 15 };
  const stopped = { ...good, text: 'Welcome to the directory.' };
  assert.equal(judge(stopped, first, spoken), 'retry');
  assert.equal(judge(stopped, { ...first, times: true }, spoken), 'accept');
  assert.equal(judge(stopped, first, { durationSec: 15.4, speechSec: 0 }), 'accept');
  assert.equal(judge(stopped, first, { durationSec: 4, speechSec: 3.8 }), 'accept');
  const whole = `${stopped.text} Please enter the first three letters of the name, and seven for the letter Q.`;
  assert.equal(judge({ ...stopped, text: whole }, first, { durationSec: 12, speechSec: 12 }), 'accept');
});

test('repeated speech is decoded again with times and then believed, but a loop is not', () => {
  const timed = { ...first, maxTokens: 0, times: true };
  const refrain = { ...good, text: `${good.text}. `.repeat(4), tokens: 40 };
  assert.equal(judge(refrain, first, { durationSec: 12, speechSec: 0 }), 'retry');
  assert.equal(judge(refrain, timed, { durationSec: 12, speechSec: 0 }), 'accept');
  const loop = { ...good, text: `${good.text}. `.repeat(22), tokens: 220 };
  assert.equal(judge(loop, timed, { durationSec: 12, speechSec: 0 }), 'retry');
  assert.equal(judge(loop, timed, { durationSec: 30, speechSec: 0 }), 'retry');
});

test('a loop compresses and runs faster than speech', () => {
  assert(isLoop({ text: 'you know '.repeat(40), tokens: 80 }, 10));
  assert(!isLoop({ text: 'you know '.repeat(20), tokens: 40 }, 10));
  assert(!isLoop({ text: good.text, tokens: 80 }, 10));
  assert.equal(compressionRatio(''), 0);
});

test('only the first attempt has a second look, if the client wants several beams and no chance', () => {
  const [looked, ...others] = attemptsFor(5, model, { temperature: 0, beams: 5 });
  assert.deepEqual(looked.doubt, { least: -1, sure: -0.15, beams: 5 });
  assert(others.every(({ doubt }) => doubt === undefined));
  assert.equal(attemptsFor(5, model, { temperature: 0, beams: 1 })[0].doubt, undefined);
  assert.equal(attemptsFor(5, model, { temperature: 0.2, beams: 5 })[0].doubt, undefined);
  assert(isInDoubt({ avgLogprob: -0.16 }, looked) && !isInDoubt({ avgLogprob: -0.15 }, looked));
  assert(!isInDoubt({ avgLogprob: -0.16 }, first));
});

test('a long text is in doubt sooner, and half of the beams look at it again', () => {
  const doubtOf = (beams: number) => attemptsFor(20, model, { temperature: 0, beams })[0].doubt;
  assert.deepEqual(
    [1, 2, 3, 5, 8].map((beams) => doubtOf(beams)?.beams),
    [undefined, 2, 2, 3, 4],
  );
  assert.equal(doubtOf(5)?.sure, -0.12);
});

test('a draft is decoded once, without a second look', () => {
  const settings = { temperature: 0, beams: 5 };
  const [{ doubt, ...first }] = attemptsFor(5, model, settings);
  assert(doubt);
  assert.deepEqual(attemptsFor(5, model, { ...settings, draft: true }), [first]);
});
