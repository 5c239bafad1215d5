/** Sentences of two languages in turn are each written in their own language, in every form of the answer. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { form, json } from '../http/harness.ts';
import { wav } from '../wav.ts';
import { MODEL, needsWeights, plain, startRealGateway } from './gateway.ts';
import { samplesOfJfk } from './jfk.ts';

const RATE = 16_000;
const PAUSE_SEC = 0.5;
const ENGLISH = 'ask what you can do for your country';
const SPANISH = 'Buenos días, me gustaría comprar pan y queso.';

/** What espeak-ng says, without the silence around it. */
function spoken(voice: string, text: string): Float32Array {
  const speech = execFileSync('espeak-ng', ['-v', voice, '-s', '130', '--stdout', text]);
  const raw = ['-f', 's16le', '-ac', '1', '-ar', `${RATE}`, '-'];
  const bytes = execFileSync('ffmpeg', ['-v', 'error', '-i', '-', ...raw], { input: speech });
  const samples = Float32Array.from(
    { length: bytes.length / 2 },
    (_, i) => bytes.readInt16LE(2 * i) / 32_768,
  );
  const isLoud = (sample: number) => Math.abs(sample) > 0.01;
  return samples.slice(samples.findIndex(isLoud), samples.findLastIndex(isLoud));
}

test('two languages in turn, with pauses of half a second, are each written as they are', async (t) => {
  if (!needsWeights(t)) return;
  const english = samplesOfJfk().slice(7.9 * RATE, 10.6 * RATE);
  const spanish = spoken('es', SPANISH);
  const pause = new Float32Array(PAUSE_SEC * RATE);
  const said = [english, spanish, english, spanish].flatMap((sentence) => [...pause, ...sentence]);
  await using gateway = await startRealGateway();
  const transcribe = (fields: Record<string, string>) =>
    fetch(`${gateway.base}/v1/audio/transcriptions`, {
      method: 'POST',
      body: form(wav(Float32Array.from(said)), { model: MODEL, ...fields }),
    });
  const { text, segments } = await json(await transcribe({ response_format: 'verbose_json' }));
  const languages = segments.map((segment: { language_code: string }) => segment.language_code);
  const changes = languages.filter((language: string, i: number) => language !== languages[i - 1]);
  assert.deepEqual(changes, ['en', 'es', 'en', 'es'], text);
  assert.equal(plain(text).split(ENGLISH).length - 1, 2, text);
  assert.equal(plain(text).split('buenos días me gustaría comprar').length - 1, 2, text);
  assert.equal((await json(await transcribe({}))).text, text);
  const events = await (await transcribe({ stream: 'true' })).text();
  const [, done = '{}'] = /event: transcript\.text\.done\ndata: (.*)/.exec(events) ?? [];
  assert.equal(JSON.parse(done).text, text);
});
