/** Whisper with real weights: what is heard, in which language, when, and with how many threads. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { Lane, TranscriptionModel, VoiceActivityModel } from '../../src/engine/types.ts';
import { chunkOptions, speechFile, textOf } from './fixtures.ts';

function weights(variable: string): { path: string; skip: string | false } {
  const path = process.env[variable] ?? '';
  return { path, skip: existsSync(path) ? false : `${variable} names no file` };
}

async function readSpeech(): Promise<Float32Array> {
  const file = await loadNative().openAudio(speechFile);
  const samples = await file.read(30 * 16_000);
  file.close();
  assert.ok(samples);
  return samples;
}

const whisper = weights('VOXGATE_TEST_MODEL');

describe('whisper', { skip: whisper.skip }, () => {
  let model: TranscriptionModel;
  let speech: Float32Array;
  before(async () => {
    speech = await readSpeech();
    model = await loadNative().loadModel({
      family: 'whisper',
      path: whisper.path,
      device: 'cpu',
      threads: 2,
    });
  });
  after(() => model.close());

  const options = { ...chunkOptions, audioContext: 600 };

  it('hears what was said', async () => {
    const emitted: string[] = [];
    const segments = await model.transcribe(speech, options, { onSegment: (s) => emitted.push(textOf([s])) });
    assert.match(textOf(segments), /fellow Americans.*what your country can do for you.*for your country\.$/);
    assert.equal(emitted.join(''), textOf(segments));
    assert.ok(segments.every((s) => s.noSpeechProb < 0.3 && s.startMs < s.endMs && s.endMs <= 11_000));
  });

  it('places every word when asked to', async () => {
    const segments = await model.transcribe(speech, { ...options, words: true });
    const country = segments
      .flatMap((s) => s.tokens)
      .find((t) => Buffer.from(t.bytes).toString() === ' country');
    assert.ok(country && Math.abs(country.endMs - 6300) < 250, JSON.stringify(country));
  });

  it('gives the same again, whatever ran between, was sampled or aborted', async () => {
    const first = await model.transcribe(speech, options);
    await model.transcribe(speech.subarray(0, 16_000), {
      ...options,
      temperature: 1,
      audioContext: 0,
      maxTokens: 20,
    });
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 100);
    await assert.rejects(
      model.transcribe(speech, { ...options, audioContext: 0 }, { signal: controller.signal }),
      controller.signal.reason,
    );
    assert.deepEqual(await model.transcribe(speech, options), first);
  });

  it('has lanes that give side by side what one gives alone', async () => {
    const segmentsOn = (lane: Lane, signal?: AbortSignal) => lane.transcribe(speech, options, { signal });
    const alone = await segmentsOn(model);
    assert.equal(model.info.lanes, 2);
    const second = await model.lane(1);
    assert.equal(await model.lane(1), second, 'made once');
    const leaving = new AbortController();
    const [first, other] = await Promise.all([segmentsOn(model), segmentsOn(second)]);
    assert.deepEqual([first, other], [alone, alone]);
    const left = segmentsOn(second, leaving.signal);
    const staying = segmentsOn(await model.lane(0));
    setTimeout(() => leaving.abort(), 20);
    await assert.rejects(left, { name: 'AbortError' });
    assert.deepEqual(await staying, alone);
  });

  it('closes its lanes with itself, while they work', async () => {
    const short = await loadNative().loadModel({
      family: 'whisper',
      path: whisper.path,
      device: 'cpu',
      threads: 2,
    });
    const lane = await short.lane(1);
    const running = assert.rejects(lane.transcribe(speech, options), { code: 'closed' });
    await short.close();
    await running;
    await assert.rejects(short.lane(2), { code: 'closed' });
  });

  it('stops within a moment in the middle of the encoder', async () => {
    const controller = new AbortController();
    let abortedAt = 0;
    setTimeout(() => {
      abortedAt = performance.now();
      controller.abort();
    }, 80);
    const call = model.transcribe(speech, { ...options, audioContext: 0 }, { signal: controller.signal });
    await assert.rejects(call, { name: 'AbortError' });
    const latency = performance.now() - abortedAt;
    assert.ok(latency < 400, `${latency} ms`);
  });

  it('guesses the language', async () => {
    const guess = await model.detectLanguage(speech, { audioContext: 600, words: false });
    assert.equal(guess.language, 'en');
    assert.ok(guess.probability > 0.8);
    assert.equal(Object.keys(guess.probabilities).length, model.info.languages.length);
  });
});

const silero = weights('VOXGATE_TEST_VAD');

describe('voice activity', { skip: silero.skip }, () => {
  let model: VoiceActivityModel;
  let speech: Float32Array;
  before(async () => {
    speech = await readSpeech();
    model = await loadNative().loadVoiceActivity({ path: silero.path });
  });
  after(() => model.close());

  it('is high in speech and low in silence', async () => {
    const probabilities = await model.probabilities(speech, { reset: true });
    assert.equal(probabilities.length, Math.ceil(speech.length / 512));
    assert.ok(probabilities.filter((p) => p > 0.5).length > 150);
    const silence = await model.probabilities(new Float32Array(51_200), { reset: true });
    assert.ok(silence.every((p) => p < 0.2));
  });

  it('goes on where the last block of a stream ended', async () => {
    const whole = await model.probabilities(speech, { reset: true });
    const parts: number[] = [];
    for (let begin = 0; begin < speech.length; begin += 512 * 7) {
      parts.push(
        ...(await model.probabilities(speech.subarray(begin, begin + 512 * 7), { reset: begin === 0 })),
      );
    }
    assert.deepEqual(Float32Array.from(parts), whole);
  });

  it('stops on a signal and is refused after close', async () => {
    const hour = new Float32Array(3600 * 16_000);
    const controller = new AbortController();
    setTimeout(() => controller.abort(), 30);
    await assert.rejects(model.probabilities(hour, { reset: true }, { signal: controller.signal }), {
      name: 'AbortError',
    });
    const other = await loadNative().loadVoiceActivity({ path: silero.path });
    await other.close();
    await assert.rejects(other.probabilities(speech, { reset: true }), { code: 'closed' });
  });
});
