/**
 * The three families run through HTTP and the real engines: Whisper with its weights, Parakeet and SenseVoice with
 * small generated ones, which give a senseless text but take every step.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { deltaSchema, doneSchema, segmentSchema, verboseSchema } from '../../src/http/openapi/openapi.ts';
import { form, json, toneWav } from '../http/harness.ts';
import { joinWavs, wav } from '../wav.ts';
import { JFK, MODEL, needsWeights, type RealGateway, startRealGateway } from './gateway.ts';

const data = (path: string) => new URL(`../native/data/${path}`, import.meta.url).pathname;
const TEN = 'id seek start end text tokens temperature avg_logprob compression_ratio no_speech_prob'.split(
  ' ',
);

let gateway: RealGateway;
before(async () => {
  gateway = await startRealGateway({
    european: data('parakeet-script.bin'),
    cjk: data('sensevoice/tones.gguf'),
  });
});
after(() => gateway[Symbol.asyncDispose]());

const post = (body: FormData) => fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body });

const ask = (fields: Record<string, string>) => {
  const body = form(readFileSync(JFK), { response_format: 'verbose_json', ...fields });
  body.append('timestamp_granularities[]', 'word');
  body.append('timestamp_granularities[]', 'segment');
  return post(body);
};

/** Makes the clip, a pause, and the clip again, which are at least two chunks. */
function clipTwice(): Buffer {
  const decode = ['-v', 'error', '-i', JFK, '-ar', '16000', '-ac', '1', '-f', 's16le', 'pipe:1'];
  const pcm = Uint8Array.from(execFileSync('ffmpeg', decode, { maxBuffer: 1e7 }));
  const clip = wav(new Int16Array(pcm.buffer));
  return joinWavs(clip, toneWav(4, 0), clip);
}

async function streamed(model: string): Promise<{ deltas: string[]; done: string; types: string[] }> {
  const response = await post(form(clipTwice(), { model, stream: 'true' }));
  assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
  const events = [...(await response.text()).matchAll(/^data: (.+)$/gm)].map((m) => JSON.parse(m[1] ?? ''));
  const deltas = events.filter(({ type }) => type === 'transcript.text.delta');
  for (const delta of deltas) deltaSchema.parse(delta);
  const done = doneSchema.parse(events.at(-1));
  assert.equal(done.model, model);
  assert(done.text.length > 0 && done.segments.length > 0, 'something is heard');
  return { deltas: deltas.map(({ delta }) => delta), done: done.text, types: events.map(({ type }) => type) };
}

for (const model of [MODEL, 'european', 'cjk']) {
  test(`${model}: verbose_json fits the one schema, with all ten segment fields and real words`, async (t) => {
    if (!needsWeights(t)) return;
    const answer = verboseSchema.parse(await json(await ask({ model })));
    assert.equal(answer.model, model);
    assert(answer.segments && answer.words);
    assert(answer.segments.length > 0 && answer.words.length > 0, 'nothing is heard');
    for (const segment of answer.segments) {
      assert.deepEqual(Object.keys(segment).sort(), [...TEN, 'language', 'language_code'].sort());
      segmentSchema.parse(segment);
      assert(segment.end >= segment.start && segment.end <= answer.duration + 0.01);
    }
    const squeeze = (text: string) => text.replace(/\s/g, '');
    assert.equal(squeeze(answer.words.map((w) => w.word).join('')), squeeze(answer.text));
    assert.equal(squeeze(answer.segments.map((s) => s.text).join('')), squeeze(answer.text));
    answer.words.reduce((clock, { start, end }) => {
      assert(start >= clock - 0.001 && end >= start);
      return start;
    }, 0);
  });

  test(`${model}: segments in a language that was asked for have the ten fields alone`, async (t) => {
    if (!needsWeights(t)) return;
    const { segments } = verboseSchema.parse(
      await json(await ask({ model, language: model === 'cjk' ? 'zh' : 'en' })),
    );
    assert(segments !== undefined && segments.length > 0);
    for (const segment of segments) assert.deepEqual(Object.keys(segment).sort(), [...TEN].sort());
  });

  test(`${model}: srt with subtitles keeps their limits`, async (t) => {
    if (!needsWeights(t)) return;
    const srt = await (await ask({ model, response_format: 'srt', segment_granularity: 'subtitle' })).text();
    const cues = srt.trim().split('\n\n');
    const times = /^\d+\n00:00:(\d\d),(\d{3}) --> 00:00:(\d\d),(\d{3})\n.{1,42}(\n.{1,42})?$/;
    for (const cue of cues) {
      const [, fromSec, fromMs, toSec, toMs] = times.exec(cue)?.map(Number) ?? assert.fail(`no cue: ${cue}`);
      const ms = Number(toSec) * 1000 + Number(toMs) - Number(fromSec) * 1000 - Number(fromMs);
      assert(ms > 0 && ms <= 7000, cue);
    }
  });
}

for (const model of [MODEL, 'cjk']) {
  test(`${model}: a stream has deltas of every chunk, which joined are the text`, async (t) => {
    if (!needsWeights(t)) return;
    const { deltas, done, types } = await streamed(model);
    assert(deltas.length >= 2, `${deltas.length} deltas`);
    assert.equal(deltas.join(''), done);
    const expected = [...deltas.map(() => 'transcript.text.delta'), 'transcript.text.done'];
    assert.deepEqual(types, expected);
  });
}

test('european does not stream: it gives a warning, the whole text as one delta, and done', async (t) => {
  if (!needsWeights(t)) return;
  const { deltas, done, types } = await streamed('european');
  assert.deepEqual(types, ['warning', 'transcript.text.delta', 'transcript.text.done']);
  assert.deepEqual(deltas, [done]);
});
