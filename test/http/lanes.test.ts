/** Requests run on a model of two lanes. Everything else about lanes is in unit/lanes.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SAMPLE_RATE } from '../../src/audio/decoder.ts';
import { gateOf } from '../gate.ts';
import { wav } from '../wav.ts';
import { form, type Gateway, heard, post, type Script, startGateway, until } from './harness.ts';

/** The tones have these lengths in seconds, and 6 s of silence follow each. */
const LENGTHS = [3, 1, 2, 4, 1.5];

const audio = wav(
  Float32Array.from(
    LENGTHS.flatMap((sec) => [
      ...Array.from({ length: sec * SAMPLE_RATE }, (_, i) => 0.5 * Math.sin(i / 10)),
      ...new Array<number>(6 * SAMPLE_RATE).fill(0),
    ]),
  ),
);

/** Tells by its length which tone is in a chunk, in seconds. */
function toneOf(samples: Float32Array): number {
  const sec = samples.filter((sample) => sample !== 0).length / SAMPLE_RATE;
  return LENGTHS.find((length) => Math.abs(sec - length) < 0.1) ?? 0;
}

async function slotIsFree(gateway: Gateway): Promise<void> {
  await until('no job is left', () => gateway.running() === 0 && gateway.uploads().length === 0);
}

const gatewayWith = (transcribe: NonNullable<Script['transcribe']>) => startGateway({ lanes: 2, transcribe });

test('the first delta of a stream has the model to itself', async () => {
  const gate = gateOf(2);
  const begun: number[] = [];
  await using gateway = await gatewayWith(async (samples) => {
    begun.push(toneOf(samples));
    if (begun.length === 1) await gate();
    return heard(' This is what was said in each of the tones.');
  });
  const response = await post(gateway, form(audio, { stream: 'true' }));
  await until('the first chunk is worked on', () => begun.length === 1);
  await sleep(30);
  assert.deepEqual(begun, [3]);
  void gate();
  assert.match(await response.text(), /transcript\.text\.done/);
  assert.equal(begun.length, LENGTHS.length);
});

test('a client that leaves stops every lane, and frees the slot', async () => {
  let stopped = 0;
  await using gateway = await gatewayWith(
    (_samples, _options, { signal }) =>
      new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => {
          stopped += 1;
          reject(signal.reason);
        });
      }),
  );
  const client = new AbortController();
  const request = post(gateway, form(audio), { signal: client.signal });
  await until('both lanes work', () => gateway.running() === 2);
  client.abort();
  await assert.rejects(request, { name: 'AbortError' });
  await slotIsFree(gateway);
  assert.equal(stopped, 2);
});
