/** Sounds that voice activity takes for speech, and of which Whisper made words: `What?`, `Uh`, `One.` */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { generatedSounds } from '../../bench/silence/sound-clips.ts';
import { form, json } from '../http/harness.ts';
import { wav } from '../wav.ts';
import { MODEL, needsWeights, type RealGateway, startRealGateway } from './gateway.ts';

const NAMES = ['a creaking door 1', 'a creaking door 2', 'a cow 1'];

let gateway: RealGateway;
before(async () => {
  gateway = await startRealGateway();
});
after(() => gateway[Symbol.asyncDispose]());

for (const name of NAMES) {
  test(`${name} gives empty text, in a language that is given, too`, async (t) => {
    if (!needsWeights(t)) return;
    const sound = generatedSounds().find((each) => each.name === name);
    assert(sound !== undefined);
    const audio = wav(sound.samples());
    for (const language of ['auto', 'en']) {
      const body = form(audio, { model: MODEL, language });
      const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body });
      assert.equal(response.status, 200);
      assert.equal((await json(response)).text, '', language);
    }
  });
}
