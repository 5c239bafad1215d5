/** Keywords change what the European and the CJK model write, through HTTP and the engines, with generated weights. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import { parakeetWithRival, whistle } from '../native/fixtures.ts';
import { wav } from '../wav.ts';
import { form, type Gateway, json, post, startGateway, toneWav } from './harness.ts';
import { COMPLETED, connectLive, silence, tone } from './realtime.ts';

const engine = loadNative();

/** Serves one model of generated weights instead of the scripted one. */
const serve = (id: 'european' | 'cjk', path: string): Promise<Gateway> =>
  startGateway({
    installed: [id, 'voice-activity'],
    loadModel: (options) => engine.loadModel({ ...options, path }),
  });

async function say(gateway: Gateway, audio: Buffer, ...keywords: string[]): Promise<string> {
  // All of the audio is speech: its tones are too short for a voice.
  const body = form(audio, { model: 'auto', chunking_strategy: '{"type":"server_vad","threshold":0}' });
  for (const keyword of keywords) body.append('keywords[]', keyword);
  return (await json(await post(gateway, body))).text;
}

test('european writes a keyword that nearly was said, and no other', async () => {
  await using gateway = await serve('european', parakeetWithRival(1.2));
  const audio = toneWav(12);
  const plain = "Hello, Dr. Europa. L'été coûte 3.5 euros… ¿Qué - sí?";
  assert.equal(await say(gateway, audio), plain);
  assert.equal(await say(gateway, audio, 'Voxgate', 'Euros'), 'Hello, Dr. euros… ¿Qué - sí?');
  assert.equal(await say(gateway, audio, 'Voxgate', 'Eurosí', '日本'), plain);
});

test('cjk writes a keyword that nearly was said, and no other', async () => {
  await using gateway = await serve(
    'cjk',
    new URL('../native/data/sensevoice/tones.gguf', import.meta.url).pathname,
  );
  const audio = wav(whistle(['你', '好', '。', '世', '好|界', '。'], 0.45));
  assert.equal(await say(gateway, audio), '你好。世好。');
  assert.equal(await say(gateway, audio, 'Voxgate', '世界'), '你好。世界。');
  assert.equal(await say(gateway, audio, '世好你'), '你好。世好。');
});

test('a live session has the keywords of its settings', async () => {
  await using gateway = await serve('european', parakeetWithRival(1.2));
  const texts: string[] = [];
  for (const keywords of [[], ['euros']]) {
    await using client = await connectLive(gateway);
    const transcription = { model: 'european', keywords };
    const format = { type: 'audio/pcm', rate: 16_000 };
    client.send({ type: 'session.update', session: { audio: { input: { format, transcription } } } });
    await client.event('session.updated');
    client.speak(tone(6));
    client.speak(silence(2));
    texts.push((await client.event(COMPLETED)).transcript);
  }
  assert.match(texts[0] ?? '', /^Hello, Dr\. Europa\. L'été/);
  assert.match(texts[1] ?? '', /^Hello, Dr\. euros…/);
});
