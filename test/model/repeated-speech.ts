/** A sentence that is said again and again is written as often as it was said, in every form of the answer. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { after, before, test } from 'node:test';
import { form, json } from '../http/harness.ts';
import { wav } from '../wav.ts';
import { JFK, MODEL, needsWeights, plain, type RealGateway, startRealGateway } from './gateway.ts';

const RATE = 16_000;
const decoded = execFileSync('ffmpeg', [
  '-v',
  'error',
  '-i',
  JFK,
  '-ac',
  '1',
  '-ar',
  `${RATE}`,
  '-f',
  's16le',
  '-',
]);
const jfk = new Int16Array(decoded.buffer.slice(decoded.byteOffset, decoded.byteOffset + decoded.length));
const cut = (from: number, to: number) => jfk.slice(from * RATE, to * RATE);

/** What he says between these seconds. */
const REFRAINS = [
  { words: 'fellow americans', samples: cut(0.2, 2.3) },
  { words: 'ask what you can do for your country', samples: cut(7.9, 10.8) },
];
const PAUSE_SEC = 0.9;

let gateway: RealGateway;
before(async () => {
  gateway = await startRealGateway();
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
});

function said(samples: Int16Array, times: number): Buffer {
  const length = samples.length + PAUSE_SEC * RATE;
  const all = new Int16Array(times * length);
  for (let i = 0; i < times; ++i) all.set(samples, i * length);
  return wav(all);
}

const forms: [string, Record<string, string>][] = [
  ['json, language given', { language: 'en' }],
  ['json, language detected', {}],
  ['verbose_json', { response_format: 'verbose_json', language: 'en' }],
  ['stream', { stream: 'true', language: 'en' }],
];

/** @param isWhole each form is tried with each sentence; else what is said 20 times is another one in every other form */
export function tryRepeatedSpeech({ isWhole }: { isWhole: boolean }): void {
  for (const [i, [name, fields]] of forms.entries())
    test(`a sentence that is said 6 and 20 times is written at least 9 times in 10: ${name}`, async (t) => {
      if (!needsWeights(t)) return;
      for (const [j, { words, samples }] of REFRAINS.entries())
        for (const times of isWhole || i % 2 === j ? [6, 20] : [6]) {
          const body = form(said(samples, times), { model: MODEL, ...fields });
          const answer = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body });
          const text: string = fields.stream ? lastText(await answer.text()) : (await json(answer)).text;
          const written = plain(text).split(words).length - 1;
          assert(written >= 0.9 * times && written <= times, `${written} of ${times}: ${text}`);
        }
    });
}

function lastText(events: string): string {
  const [, data = '{}'] = /event: transcript\.text\.done\ndata: (.*)/.exec(events) ?? [];
  return JSON.parse(data).text;
}
