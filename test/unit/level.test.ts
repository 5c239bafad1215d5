/** Soft audio is as loud as clear speech for the voice activity model, and soft speech beside loud for Whisper. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { speechChunks } from '../../src/transcription/speech/chunks.ts';
import { createLeveler, createOffsetRemover, raiseSoftSpans } from '../../src/transcription/speech/level.ts';

const WINDOW = 512;
const FOREVER = new AbortController().signal;
/** A tone of this root mean square. */
const tone = (level: number, windows = 40) =>
  Float32Array.from({ length: windows * WINDOW }, (_, i) => Math.SQRT2 * level * Math.sin(i / 7));
const meanOf = (samples: Float32Array) => samples.reduce((sum, sample) => sum + sample, 0) / samples.length;
const levelOf = (samples: Float32Array) =>
  Math.sqrt(samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length);

test('soft audio gets the level of clear speech, and what is louder stays as it is', () => {
  for (const level of [0.05, 0.01, 0.002])
    assert(Math.abs(levelOf(createLeveler().level(tone(level))) - 0.1) < 0.002, `${level}`);
  for (const level of [0.1, 0.3]) {
    const block = tone(level);
    assert.equal(createLeveler().level(block), block);
  }
});

test('a word in a long silence counts as much as speech that goes on', () => {
  const block = new Float32Array(500 * WINDOW);
  block.set(tone(0.004, 8), 100 * WINDOW);
  const word = createLeveler()
    .level(block)
    .subarray(100 * WINDOW, 108 * WINDOW);
  assert(Math.abs(levelOf(word) - 0.1) < 0.002);
});

test('the gain has an end, and silence, a short rest and an empty block do no harm', () => {
  const leveler = createLeveler();
  assert(Math.abs(levelOf(leveler.level(tone(0.0001))) - 0.01) < 0.0002);
  assert(leveler.level(new Float32Array(WINDOW)).every((sample) => sample === 0));
  assert.equal(leveler.level(new Float32Array(0)).length, 0);
  assert(Math.abs(levelOf(leveler.level(tone(0.0001))) - 0.01) < 0.0002);
  const rest = tone(0.01).subarray(0, 100);
  assert(levelOf(createLeveler().level(rest)) <= 0.1001);
});

test('a pause after loud speech becomes loud step by step, and speech after a pause is not too loud', () => {
  const leveler = createLeveler();
  const pause = Array<number>(5).fill(0.001);
  const levels = [0.2, ...pause, 0.2].map((level) => levelOf(leveler.level(tone(level))));
  const expected = [0.2, 0.005, 0.005, 0.005, 0.008, 0.016, 0.2];
  for (const [i, level] of levels.entries())
    assert(Math.abs(level - (expected[i] ?? 0)) < 0.05 * level, `block ${i}: ${level}`);
  const gains = levels.map((_, i) => leveler.gainIn(i * 40 * WINDOW, (i + 1) * 40 * WINDOW));
  assert.deepEqual(gains.map(Math.round), [1, 5, 5, 5, 8, 16, 1]);
  assert.equal(Math.round(leveler.gainIn(0, 80 * WINDOW)), 1, 'the least of a span');
  assert.equal(leveler.gainIn(280 * WINDOW, 290 * WINDOW), 1, 'behind the end');
});

test('who is far away beside a loud voice is leveled by himself, and the pause of a sentence is not', () => {
  const block = new Float32Array(400 * WINDOW);
  block.set(tone(0.1, 60), 0);
  block.set(tone(0.1 / 40, 60), 100 * WINDOW); // 32 dB softer
  block.set(tone(0.0001, 25), 60 * WINDOW);
  const leveler = createLeveler();
  const heard = leveler.level(block);
  const at = (window: number) => levelOf(heard.subarray(window * WINDOW, (window + 10) * WINDOW));
  assert(Math.abs(at(20) - 0.1) < 0.001, 'the loud voice as it is');
  assert(Math.abs(at(130) - 0.005) < 0.0002, 'the far one 26 dB softer');
  assert(at(66) < 0.00011, 'the pause after the loud one');
  const steps = heard
    .subarray(105 * WINDOW, 155 * WINDOW)
    .map((sample, i, all) => Math.abs(sample - (all[i - 1] ?? sample)));
  assert(Math.max(...steps) < 0.002, 'no steps');
});

test('the gain of a span of hours ago is forgotten, and that of the last two minutes is not', () => {
  const leveler = createLeveler();
  for (let i = 0; i < 20; i += 1) leveler.level(tone(0.01, 500));
  assert.equal(Math.round(leveler.gainIn(9900 * WINDOW, 9990 * WINDOW)), 10);
  assert.equal(Math.round(leveler.gainIn(6100 * WINDOW, 9990 * WINDOW)), 10);
  assert.equal(leveler.gainIn(0, 4000 * WINDOW), 1);
});

/** The chunks of some tones of 0.6 s, each in a block of its own, and the levels at which the model of voice heard them. */
async function heardAt(
  levels: readonly number[],
  certainty: number,
  given: { leveled?: boolean; raisesSoft?: boolean } = {},
  offset = 0,
) {
  const heard: number[] = [];
  const vad = {
    probabilities: async (samples: Float32Array) => {
      heard.push(levelOf(samples.subarray(0, 20 * WINDOW)));
      return new Float32Array(samples.length / WINDOW).fill(certainty).fill(0, -20);
    },
    close: async () => undefined,
  };
  async function* blocks() {
    for (const level of levels) {
      const block = new Float32Array(40 * WINDOW);
      block.set(tone(level, 20));
      yield block.map((sample) => sample + offset);
    }
  }
  const options = { signal: FOREVER, onBlock: () => undefined, ...given };
  const chunks = [];
  for await (const chunk of speechChunks(blocks(), vad, options)) chunks.push(chunk);
  return { heard, chunks, spans: chunks.flatMap(({ speech }) => speech).length };
}

test('the voice activity model hears the level of clear speech, and the model that writes hears the audio', async () => {
  const { heard, chunks } = await heardAt([0.01], 0.9);
  assert(Math.abs((heard[0] ?? 0) - 0.1) < 0.002);
  assert(chunks.every(({ samples }) => levelOf(samples) < 0.0101));
  assert.deepEqual(
    chunks.map(({ gain }) => Math.round(gain ?? 1)),
    [10],
  );
});

test('an offset that is louder than the sound is removed, and all other audio stays as it is', async () => {
  const sounds = [tone(0.1), tone(0.1).map((sample) => sample + 0.05), new Float32Array(8000)];
  const { remove } = createOffsetRemover();
  for (const block of [...sounds, new Float32Array(0), tone(0.1, 40).subarray(0, 20)])
    assert.equal(remove(block), block, 'to the bit');
  const { heard, chunks } = await heardAt([0.01, 0.3], 0.9, {}, 0.2);
  assert(Math.abs((heard[0] ?? 0) - 0.1) < 0.002, 'soft speech is leveled by itself');
  assert(Math.abs((heard[1] ?? 0) - 0.3) < 0.002, 'the offset is removed beside loud speech, too');
  assert(chunks.every(({ samples }) => Math.abs(meanOf(samples)) < 0.002));
  const { chunks: small } = await heardAt([0.3], 0.9, {}, 0.05);
  assert(small.every(({ samples }) => Math.abs(meanOf(samples) - 0.05) < 0.002));
});

test('where another recording follows, its own offset is removed, or nothing', () => {
  const { remove } = createOffsetRemover();
  for (const offset of [0.2, 0, -0.3]) {
    const block = remove(tone(0.1).map((sample) => sample + offset));
    assert(Math.abs(meanOf(block)) < 0.001, `${offset}`);
  }
  const rest = remove(new Float32Array(100).fill(-0.3));
  assert(
    rest.every((sample) => Math.abs(sample) < 0.005),
    'the rest of the last one is too short to have its own',
  );
});

test('a soft sound in doubt is none, but softer speech beside a loud voice may be in doubt', async () => {
  assert.equal((await heardAt([0.01], 0.55)).spans, 0);
  assert.equal((await heardAt([0.3, 0.01], 0.55)).spans, 1);
  assert.equal((await heardAt([0.3, 0.01], 0.9)).spans, 2);
});

test('a span whose padding lies in a silent block before is as loud as its own block', async () => {
  const heard: number[] = [];
  const vad = {
    probabilities: async (samples: Float32Array) => {
      heard.push(samples.length);
      return new Float32Array(samples.length / WINDOW).fill(heard.length === 1 ? 0 : 0.55).fill(0, -20);
    },
    close: async () => undefined,
  };
  const soft = new Float32Array(80 * WINDOW);
  soft.set(tone(0.01, 20));
  soft.set(tone(0.3, 10), 70 * WINDOW); // makes the gain of the block 1
  async function* blocks() {
    yield new Float32Array(40 * WINDOW);
    yield soft;
  }
  let spans = 0;
  for await (const { speech } of speechChunks(blocks(), vad, { signal: FOREVER, onBlock: () => undefined }))
    spans += speech.length;
  assert.equal(spans, 1);
});

test('where voice activity is known already, nothing is leveled', async () => {
  const { heard, chunks, spans } = await heardAt([0.01], 0.55, { leveled: false });
  assert(Math.abs((heard[0] ?? 0) - 0.01) < 0.0002);
  assert.deepEqual([spans, chunks[0]?.gain], [1, undefined]);
});

const SAMPLES = 16_000;
/** Where a chunk has speech of 1 s after pauses of 1 s, and how loud. */
function chunkOf(levels: readonly number[]) {
  const samples = new Float32Array((2 * levels.length + 1) * SAMPLES).fill(0.0001);
  const spans = levels.map((level, i) => {
    const start = (2 * i + 1) * SAMPLES;
    samples.set(tone(level, 32).subarray(0, SAMPLES), start);
    return { start, end: start + SAMPLES };
  });
  return { samples, spans };
}

test('Whisper hears a span far below the loudest 12 dB softer, and all else as it is', () => {
  const levels = [0.2, 0.2 / 40, 0.08];
  const { samples, spans } = chunkOf(levels);
  const before = samples.slice();
  raiseSoftSpans(samples, spans);
  const heard = spans.map(({ start, end }) => levelOf(samples.subarray(start, end)));
  for (const [i, expected] of [0.2, 0.05, 0.08].entries())
    assert(Math.abs((heard[i] ?? 0) - expected) < 0.01 * expected, `span ${i}: ${heard[i]}`);
  const ramp = SAMPLES / 10;
  const changed = Array.from(samples).flatMap((sample, i) => (sample === before[i] ? [] : [i]));
  assert.deepEqual([changed[0], changed.at(-1)], [3 * SAMPLES - ramp + 1, 4 * SAMPLES + ramp - 2]);
  const steps = samples.subarray(3 * SAMPLES - ramp - 1, 3 * SAMPLES).map((sample, i, all) => sample - (all[i - 1] ?? sample)); // biome-ignore format: one line
  assert(steps.every((step) => Math.abs(step) < 0.0001), 'a ramp without steps'); // biome-ignore format: one line
});

test('the raise has an end, and silence and neighbors without a pause do no harm', () => {
  const { samples, spans } = chunkOf([0.5, 0.0005, 0]);
  raiseSoftSpans(samples, spans);
  assert(Math.abs(levelOf(samples.subarray(3 * SAMPLES, 4 * SAMPLES)) - 32 * 0.0005) < 0.0005);
  assert(samples.every(Number.isFinite));
  const close = tone(0.4, 3);
  close.set(tone(0.004, 1), WINDOW);
  raiseSoftSpans(close, [0, 1, 2].map((i) => ({ start: i * WINDOW, end: (i + 1) * WINDOW }))); // biome-ignore format: one line
  assert(Math.abs(levelOf(close.subarray(WINDOW, 2 * WINDOW)) - 0.1) < 0.002);
  assert(Math.abs(levelOf(close.subarray(0, WINDOW)) - 0.4) < 0.01);
  raiseSoftSpans(samples, []);
});

test('only for the family that asks a soft span of a file is raised in the chunk that it hears', async () => {
  const levelsIn = async (options: { leveled?: boolean; raisesSoft?: boolean }) => {
    const { chunks } = await heardAt([0.3, 0.01], 0.9, options);
    assert.equal(chunks.length, 1);
    return chunks.flatMap(({ samples, speech, startSec }) =>
      speech.map((span) => levelOf(samples.subarray(...at(span.startSec - startSec)))),
    );
  };
  // The tone begins with the block of its span, or a little later for a padded one.
  const at = (sec: number): [number, number] => [Math.round(sec * SAMPLES) + 2048, Math.round(sec * SAMPLES) + 8192]; // biome-ignore format: one line
  const isNear = (found: number | undefined, expected: number) => Math.abs((found ?? 0) - expected) < 0.1 * expected; // biome-ignore format: one line
  assert(isNear((await levelsIn({ raisesSoft: true }))[1], 0.075));
  assert(isNear((await levelsIn({}))[1], 0.01));
  assert(isNear((await levelsIn({ leveled: false, raisesSoft: true }))[1], 0.01), 'a live session');
});
