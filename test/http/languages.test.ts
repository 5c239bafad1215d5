/** The languages that a model detects are those of the catalogue, and of them those that the client allows. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LoadOptions, TranscriptionModel } from '../../src/engine/types.ts';
import { joinWavs, wav } from '../wav.ts';
import { form, type Gateway, heard, json, post, type Script, startGateway, toneWav } from './harness.ts';
import { scriptedEngine } from './scripted-engine.ts';

/** The model hears Welsh rather than what is spoken, as Whisper does with distant speech. */
const PROBABILITIES = { cy: 0.6, fr: 0.2, de: 0.15, en: 0.05 };

interface Scene extends AsyncDisposable {
  gateway: Gateway;
  /** Number of detections. */
  detections(): number;
}

async function startScene(modelId: string): Promise<Scene> {
  let detections = 0;
  const script: Script = {
    installed: [modelId, 'voice-activity'],
    transcribe: async (_samples, { language }) => heard(` ${language}`),
  };
  const loadModel = async (options: LoadOptions): Promise<TranscriptionModel> => {
    const model = await scriptedEngine(script).loadModel(options);
    const hearing: TranscriptionModel = {
      ...model,
      lane: async () => hearing,
      detectLanguage: async () => {
        detections++;
        return { language: 'cy', probability: 0.6, probabilities: PROBABILITIES };
      },
    };
    return hearing;
  };
  const gateway = await startGateway({ ...script, loadModel });
  return {
    gateway,
    detections: () => detections,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

async function hear(gateway: Gateway, model: string, ...languages: string[]) {
  const body = form(toneWav(1), { model, response_format: 'verbose_json' });
  for (const language of languages) body.append('languages[]', language);
  const { text, language_code, language_probability } = await json(await post(gateway, body));
  return [text, language_code, language_probability];
}

test('each segment says in which language it was heard, unless the client gave one or wants English', async () => {
  const spoken = ['de', 'fr', 'de'];
  const script: Script = {
    installed: ['multilingual-base', 'voice-activity'],
    transcribe: async (_samples, { language }) => heard(` ${language}.`),
  };
  const loadModel = async (options: LoadOptions): Promise<TranscriptionModel> => {
    const model = await scriptedEngine(script).loadModel(options);
    const hearing: TranscriptionModel = {
      ...model,
      lane: async () => hearing,
      detectLanguage: async () => {
        const language = spoken.shift() ?? 'de';
        return { language, probability: 0.99, probabilities: { [language]: 0.99 } };
      },
    };
    return hearing;
  };
  await using gateway = await startGateway({ ...script, loadModel });
  const pause = wav(new Float32Array(3 * 16_000));
  const audio = joinWavs(toneWav(12), pause, toneWav(20), pause, toneWav(20));
  const ask = async (fields: Record<string, string>) => {
    const body = form(audio, { model: 'multilingual-base', response_format: 'verbose_json', ...fields });
    const { segments } = await json(await post(gateway, body));
    return segments.map((segment: any) => [segment.language, segment.language_code]);
  };
  assert.deepEqual(await ask({}), [
    ['german', 'de'],
    ['french', 'fr'],
    ['german', 'de'],
  ]);
  assert.deepEqual(await ask({ language: 'de' }), Array(3).fill([undefined, undefined]));
  assert.deepEqual(await ask({ translate: 'on' }), Array(3).fill([undefined, undefined]));
});

test('a model of one language never writes another one, and does not listen for it', async () => {
  const model = 'multilingual-distil-large-v3';
  await using scene = await startScene(model);
  assert.deepEqual(await hear(scene.gateway, model), ['en', 'en', 1]);
  assert.deepEqual(await hear(scene.gateway, model, 'fr', 'de'), ['en', 'en', 1], 'it knows none of these');
  assert.equal(scene.detections(), 0);
});

test('detection takes the most probable of the languages that the client allows and the model knows', async () => {
  const model = 'multilingual-base';
  await using scene = await startScene(model);
  assert.deepEqual(await hear(scene.gateway, model), ['cy', 'cy', 0.6]);
  const [text, code, probability] = await hear(scene.gateway, model, 'en', 'german', 'fr', 'ky');
  assert.deepEqual([text, code], ['fr', 'fr']);
  assert(Math.abs(probability - 0.5) < 1e-6, `${probability} is its part among those allowed`);
  assert.equal(scene.detections(), 2);
  assert.deepEqual(await hear(scene.gateway, model, 'de', 'ky'), ['de', 'de', 1]);
  assert.equal(scene.detections(), 2, 'there is nothing to choose among one');
});
