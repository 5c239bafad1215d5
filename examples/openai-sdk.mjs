/**
 * Transcription, words, a stream, speech and chat with the OpenAI package of npm.
 *
 *     npm install openai
 *     node openai-sdk.mjs speech.mp3
 *
 * VOXGATE_URL is the gateway (http://127.0.0.1:8000), VOXGATE_API_KEY its key, if it wants one.
 */
import { readFile, writeFile } from 'node:fs/promises';
import OpenAI from 'openai';

const { VOXGATE_URL = 'http://127.0.0.1:8000', VOXGATE_API_KEY = 'none' } = process.env;
const path = process.argv[2];
if (path === undefined) throw new Error('usage: node openai-sdk.mjs FILE');

// Not fs.createReadStream(path): the SDK does not try again with a body that it can read only once.
const file = new File([await readFile(path)], 'audio');
// A busy gateway answers 503 with Retry-After: the SDK waits that long and tries again, for a minute here. Errors
// that would only repeat themselves carry X-Should-Retry: false, and the SDK throws them at once.
const client = new OpenAI({ baseURL: `${VOXGATE_URL}/v1`, apiKey: VOXGATE_API_KEY, maxRetries: 12 });

// What can serve now. Speech and chat are listed only while their upstreams answer.
const { data: models } = await client.models.list();
const modelFor = (capability) => models.find((model) => model.capabilities.includes(capability))?.id;

const answer = await client.audio.transcriptions.create({
  model: 'auto',
  file,
  response_format: 'verbose_json',
  timestamp_granularities: ['segment', 'word'],
});
console.log(`text: ${answer.text.trim()}`);
for (const { word, start, end } of answer.words) console.log(`word: ${start} to ${end} s ${word}`);

const events = await client.audio.transcriptions.create({ model: 'auto', file, stream: true });
for await (const event of events) {
  if (event.type === 'transcript.text.delta') console.log(`delta: ${event.delta.trim()}`);
}

const voice = modelFor('tts');
if (voice !== undefined) {
  const speech = await client.audio.speech.create({ model: voice, voice: 'alloy', input: answer.text });
  await writeFile('speech.wav', speech.body);
  console.log('speech: speech.wav');
}

const chat = modelFor('llm');
if (chat !== undefined) {
  const messages = [{ role: 'user', content: `Sum up in one sentence: ${answer.text}` }];
  const parts = await client.chat.completions.create({ model: chat, messages, stream: true });
  process.stdout.write('chat: ');
  for await (const part of parts) process.stdout.write(part.choices[0]?.delta.content ?? '');
  console.log();
}
