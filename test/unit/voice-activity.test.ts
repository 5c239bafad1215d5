/** Probabilities become spans of speech: these tests cover hysteresis, padding, and cuts where a span is too long. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  createSegmenter,
  DEFAULT_SEGMENTER,
  type Span,
  type SpeechSpan,
} from '../../src/transcription/speech/voice-activity.ts';

/** Each run is [windows, probability]. */
function probabilities(...runs: [number, number][]): Float32Array {
  return Float32Array.from(runs.flatMap(([count, p]) => Array<number>(count).fill(p)));
}

function speechSpans(all: Float32Array, blockSize = all.length, options = DEFAULT_SEGMENTER): SpeechSpan[] {
  const segmenter = createSegmenter(options);
  const spans: SpeechSpan[] = [];
  for (let i = 0; i < all.length; i += blockSize)
    spans.push(...segmenter.push(all.subarray(i, i + blockSize)));
  return [...spans, ...segmenter.finish()];
}

function segment(...args: Parameters<typeof speechSpans>): Span[] {
  return speechSpans(...args).map(({ start, end }) => ({ start, end }));
}

test('silence has no spans', () => {
  assert.deepEqual(segment(probabilities([1000, 0.1])), []);
  assert.deepEqual(segment(new Float32Array(0)), []);
});

test('speech is padded on both sides, within the audio', () => {
  assert.deepEqual(segment(probabilities([20, 0], [30, 0.9], [40, 0])), [{ start: 14, end: 56 }]);
  assert.deepEqual(segment(probabilities([2, 0], [30, 0.9], [3, 0])), [{ start: 0, end: 35 }]);
});

test('a short pause does not end a span, and a long one does', () => {
  assert.equal(segment(probabilities([30, 0.9], [10, 0], [30, 0.9], [50, 0])).length, 1);
  assert.equal(segment(probabilities([30, 0.9], [20, 0], [30, 0.9], [50, 0])).length, 2);
});

test('speech that begins at 0.5 goes on at 0.4, but none begins at 0.4', () => {
  assert.deepEqual(segment(probabilities([50, 0.4])), []);
  assert.deepEqual(segment(probabilities([20, 0.9], [50, 0.4], [50, 0])), [{ start: 0, end: 76 }]);
});

const certainties = (...runs: [number, number][]) =>
  speechSpans(probabilities(...runs)).map(({ certainty }) => Number(certainty.toFixed(3)));

test('the surest quarter of a second makes a span certain, however long the rest of it is', () => {
  assert.deepEqual(certainties([30, 0.6], [50, 0]), [0.6]);
  assert.deepEqual(certainties([100, 0.6], [8, 1], [100, 0.6], [50, 0]), [1]);
  assert.deepEqual(certainties([100, 0.6], [4, 1], [100, 0.6], [50, 0]), [0.8]);
  assert.deepEqual(certainties([8, 0.75], [50, 0]), [0.75]);
});

test('each part of a span that was cut has its own certainty', () => {
  assert.deepEqual(certainties([600, 0.9], [3, 0.4], [600, 0.7], [50, 0]), [0.9, 0.7]);
});

test('a click is no speech', () => {
  assert.deepEqual(segment(probabilities([50, 0], [5, 0.9], [50, 0])), []);
});

test('a long span is cut at its least speech-like window, without losing or doubling a window', () => {
  const long = probabilities([600, 0.9], [3, 0.4], [600, 0.9], [50, 0]);
  const spans = segment(long);
  assert.equal(spans.length, 2);
  assert.equal(spans[0]?.end, spans[1]?.start);
  assert.equal(spans[0]?.end, 600);
});

test('the first span is cut earlier than the others', () => {
  const spans = segment(probabilities([1500, 0.9], [50, 0]), 50, {
    ...DEFAULT_SEGMENTER,
    firstMaxSpeech: 400,
  });
  const lengths = spans.map(({ start, end }) => end - start);
  assert((lengths[0] ?? 0) <= 400 && (lengths[1] ?? 0) > 400, `${lengths}`);
});

test('a long span that ends in silence is not cut there, and a word that follows soon goes on', () => {
  const { maxSpeech, minSilence, minSpeech } = DEFAULT_SEGMENTER;
  const pause = minSilence - 4;
  const spoken = maxSpeech - pause;
  const [only, ...none] = segment(probabilities([spoken, 0.9], [3 * minSilence, 0.01]));
  assert.deepEqual([only?.start, none], [0, []]);
  assert((only?.end ?? 0) >= spoken);
  const short = minSpeech - 1;
  const spans = segment(probabilities([spoken, 0.9], [pause, 0.01], [short, 0.9], [3 * minSilence, 0.01]));
  assert.equal(spans.length, 2, 'the short word is heard');
});

const options = fc.record({
  threshold: fc.constant(0.5),
  endThreshold: fc.constant(0.35),
  minSpeech: fc.integer({ min: 1, max: 10 }),
  minSilence: fc.integer({ min: 1, max: 20 }),
  padding: fc.integer({ min: 0, max: 12 }),
  maxSpeech: fc.integer({ min: 20, max: 100 }),
});
const curve = fc
  .array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.float({ min: 0, max: 1, noNaN: true })), {
    maxLength: 30,
  })
  .map((runs) => probabilities(...runs));

test('spans are ordered, disjoint, inside the audio and no longer than the limit', () => {
  fc.assert(
    fc.property(curve, options, (all, o) => {
      const spans = segment(all, all.length, o);
      let before = 0;
      for (const { start, end } of spans) {
        assert(start >= before && end > start && end <= all.length);
        assert(end - start <= o.maxSpeech + 2 * o.padding);
        before = end;
      }
    }),
  );
});

test('the blocks the audio comes in make no difference', () => {
  fc.assert(
    fc.property(curve, options, fc.integer({ min: 1, max: 50 }), (all, o, blockSize) => {
      assert.deepEqual(speechSpans(all, blockSize, o), speechSpans(all, all.length, o));
    }),
  );
});

test('audio that is declared settled is never asked for again', () => {
  fc.assert(
    fc.property(curve, options, (all, o) => {
      const segmenter = createSegmenter(o);
      let settled = 0;
      for (const p of all) {
        for (const span of segmenter.push(Float32Array.of(p))) assert(span.start >= settled);
        assert(segmenter.settled >= settled);
        settled = segmenter.settled;
      }
      for (const span of segmenter.finish()) assert(span.start >= settled);
    }),
  );
});

test('every window of sure speech longer than the minimum is inside a span', () => {
  fc.assert(
    fc.property(curve, options, (all, o) => {
      const spans = segment(all, all.length, o);
      let run = 0;
      all.forEach((p, i) => {
        run = p >= o.threshold ? run + 1 : 0;
        if (run >= o.minSpeech)
          assert(
            spans.some((s) => s.start <= i && i < s.end),
            `window ${i} is lost`,
          );
      });
    }),
  );
});
