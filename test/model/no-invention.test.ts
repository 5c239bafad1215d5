/** Audio without speech gives no text; users of Whisper complain about invented text most often. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { form, json } from '../http/harness.ts';
import { wav } from '../wav.ts';
import { MODEL, needsWeights, type RealGateway, startRealGateway } from './gateway.ts';
import { SOUNDS } from './sounds.ts';

let gateway: RealGateway;
before(async () => {
  gateway = await startRealGateway();
});
after(() => gateway[Symbol.asyncDispose]());

const LENGTHS_SEC = [5, 13, 15, 60];

for (const [name, sound] of Object.entries(SOUNDS)) {
  test(`${name} gives empty text`, async (t) => {
    if (!needsWeights(t)) return;
    for (const seconds of LENGTHS_SEC) {
      const body = form(wav(sound(seconds)), { model: MODEL });
      const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body });
      assert.equal(response.status, 200);
      assert.equal((await json(response)).text, '', `${seconds} s`);
    }
  });
}
