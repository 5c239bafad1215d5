/** A request's audio is cut by what the client tuned and what the family needs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DEFAULT_LIMITS } from '../../src/transcription/speech/chunks.ts';
import { cuttingFor } from '../../src/transcription/speech/cutting.ts';
import {
  createSegmenter,
  DEFAULT_SEGMENTER,
  WINDOW_SEC,
} from '../../src/transcription/speech/voice-activity.ts';

function segmenterAt(threshold: number) {
  const voiceActivity = { threshold, prefixPaddingMs: undefined, silenceDurationMs: undefined };
  return cuttingFor({ voiceActivity }, {}, true).segmenter;
}

test('speech never needs more to go on than it needed to begin', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (threshold) => {
      assert(segmenterAt(threshold).endThreshold <= threshold);
    }),
  );
});

test('a span is no longer than a model takes, however much silence is kept around it', () => {
  // 27 s of speech, which is not cut without padding.
  const speech = Float32Array.from({ length: 1600 }, (_, i) => (i > 400 && i < 1250 ? 0.9 : 0));
  for (const isFile of [false, true])
    for (const prefixPaddingMs of [undefined, 0, 200, 1300, 5000]) {
      const voiceActivity = { threshold: undefined, prefixPaddingMs, silenceDurationMs: 2000 };
      const { segmenter } = cuttingFor({ voiceActivity }, {}, isFile);
      const { push, finish } = createSegmenter(segmenter);
      const lengths = [...push(speech), ...finish()].map(({ start, end }) => (end - start) * WINDOW_SEC);
      assert(lengths.length > 0 && Math.max(...lengths) < 28.5, `${isFile} ${prefixPaddingMs}: ${lengths}`);
    }
  const { segmenter } = cuttingFor({ voiceActivity: { threshold: 0.5 } as never }, {}, true);
  assert.equal(segmenter.maxSpeech, DEFAULT_SEGMENTER.maxSpeech);
});

test('at a threshold of 0 all of the audio is speech, however little it sounds like it', () => {
  const segmenter = createSegmenter(segmenterAt(0));
  const spans = [...segmenter.push(new Float32Array(100)), ...segmenter.finish()];
  assert.deepEqual(spans, [{ start: 0, end: 100, certainty: 0 }]);
});

test('the limits are those of the family, and the first chunk of a file is shorter', () => {
  const voiceActivity = { threshold: undefined, prefixPaddingMs: undefined, silenceDurationMs: undefined };
  const family = { maxSec: 20, maxGapSec: 4 };
  const utterance = cuttingFor({ voiceActivity }, family, false);
  assert.deepEqual(utterance.limits, { ...DEFAULT_LIMITS, ...family });
  assert.deepEqual(utterance.segmenter, DEFAULT_SEGMENTER);
  const file = cuttingFor({ voiceActivity }, family, true);
  assert.deepEqual(file.limits, {
    ...utterance.limits,
    firstSec: 14,
    firstGapSec: DEFAULT_LIMITS.maxGapSec,
  });
  assert.equal(file.segmenter.maxSpeech, DEFAULT_SEGMENTER.maxSpeech);
  const firstSec = (file.segmenter.firstMaxSpeech ?? 0) * WINDOW_SEC;
  assert(Math.abs(firstSec - 14) < WINDOW_SEC, `${firstSec} s`);
  assert.equal(cuttingFor({ voiceActivity }, { maxSec: 10 }, true).limits.firstSec, 10);
});

test('speech ends a little below the probability at which it begins', () => {
  for (const [threshold, end] of [
    [0.5, 0.35],
    [0.9, 0.75],
    [0.1, 0.01],
  ] as const)
    assert.equal(segmenterAt(threshold).endThreshold.toFixed(3), end.toFixed(3), `${threshold}`);
});
