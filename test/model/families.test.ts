/**
 * The three families through HTTP and the real engines: Whisper with its weights, Parakeet and SenseVoice with
 * small generated ones, which hear nonsense but take every step.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { segmentSchema, verboseSchema } from '../../src/http/openapi.ts';
import { form, json } from '../http/harness.ts';
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

const ask = (fields: Record<string, string>) => {
  const body = form(readFileSync(JFK), { response_format: 'verbose_json', ...fields });
  body.append('timestamp_granularities[]', 'word');
  body.append('timestamp_granularities[]', 'segment');
  return fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body });
};

for (const model of [MODEL, 'european', 'cjk']) {
  test(`${model}: verbose_json fits the one schema, with all ten segment fields and real words`, async (t) => {
    if (!needsWeights(t)) return;
    const answer = verboseSchema.parse(await json(await ask({ model })));
    assert.equal(answer.model, model);
    assert(answer.segments && answer.words);
    assert(answer.segments.length > 0, 'no segments');
    for (const segment of answer.segments) {
      assert.deepEqual(Object.keys(segment).sort(), [...TEN].sort());
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

  test(`${model}: srt of subtitles holds the limits`, async (t) => {
    if (!needsWeights(t)) return;
    const srt = await (await ask({ model, response_format: 'srt', segment_granularity: 'subtitle' })).text();
    const cues = srt.trim().split('\n\n');
    assert(cues.length > 0);
    for (const cue of cues) assert((cue.split('\n')[2] ?? '').length <= 70, cue);
  });
}
