/** A request's audio is cut by what the client tuned and what the family needs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cuttingFor } from '../../src/transcription/cutting.ts';
import { createSegmenter } from '../../src/transcription/voice-activity.ts';

function segmenterAt(threshold: number) {
  const voiceActivity = { threshold, prefixPaddingMs: undefined, silenceDurationMs: undefined };
  return cuttingFor({ voiceActivity, stream: false }).segmenter;
}

test('speech never needs more to go on than it needed to begin', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, noNaN: true }), (threshold) => {
      assert(segmenterAt(threshold).endThreshold <= threshold);
    }),
  );
});

test('at a threshold of 0 all of the audio is speech, however little it sounds like it', () => {
  const segmenter = createSegmenter(segmenterAt(0));
  const spans = [...segmenter.push(new Float32Array(100)), ...segmenter.finish()];
  assert.deepEqual(spans, [{ start: 0, end: 100, certainty: 0 }]);
});
