/** What a model has used goes back to the system when it is unloaded, and what a long chunk has used soon after it. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { until } from '../until.ts';
import { JFK } from '../wav.ts';
import { MODEL, needsWeights, type RealGateway, startRealGateway } from './gateway.ts';

const skip = process.platform !== 'linux' && '/proc is on Linux only';
const MIB = 1024 * 1024;

/** Weights, two lanes and what requests hold. */
const MOST_LOADED_BYTES = 300 * MIB;
/** Beside the model it is code, and garbage that V8 keeps. */
const MOST_LEFT_BYTES = 50 * MIB;
const ROUNDS = 3;
const FORMS: readonly Record<string, string>[] = [
  { response_format: 'json' },
  { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' },
  { stream: 'true', language: 'en' },
];

test('an unloaded model leaves nothing behind, however often it is loaded', { skip }, async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway({}, { SVC_THREADS: '2' });
  const idle = residentBytes();
  const above: number[] = [];
  const note = () => above.push(residentBytes() - idle) && `${above.map(megabytes).join(', ')} MB above idle`;
  for (let round = 0; round < ROUNDS; round++) {
    await answerAll(gateway);
    assert(residentBytes() - idle < MOST_LOADED_BYTES, `loaded: ${note()}`);
    const answer = await fetch(`${gateway.base}/admin/api/reset-asr-state`, { method: 'POST' });
    assert.equal(answer.status, 200);
    // The memory is free a moment after the answer.
    await until('the memory is free', () => residentBytes() - idle < MOST_LEFT_BYTES).catch(() => undefined);
    assert(residentBytes() - idle < MOST_LEFT_BYTES, `unloaded: ${note()}`);
  }
  t.diagnostic(`loaded and unloaded in turns: ${above.map(megabytes).join(', ')} MB above idle`);
});

/** Loads the model and has speech of 44 s answered in every form. */
async function answerAll(gateway: RealGateway): Promise<void> {
  const speech = readFileSync(JFK);
  for (const fields of FORMS) {
    const form = new FormData();
    // Frames of mp3 can be joined. Four clips fill both lanes with chunks.
    form.append('file', new Blob([speech, speech, speech, speech]), 'speech.mp3');
    for (const [name, value] of Object.entries({ model: MODEL, ...fields })) form.append(name, value);
    const answer = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body: form });
    assert.match(await answer.text(), /country/);
  }
}

function residentBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage.rss();
}

function megabytes(bytes: number): string {
  return (bytes / MIB).toFixed(0);
}
