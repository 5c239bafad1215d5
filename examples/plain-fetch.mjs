/**
 * Transcription, words, a stream, speech and chat without packages: `node plain-fetch.mjs speech.mp3`.
 * VOXGATE_URL is the gateway (http://127.0.0.1:8000), VOXGATE_API_KEY its key, if it wants one.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const { VOXGATE_URL = 'http://127.0.0.1:8000', VOXGATE_API_KEY = 'none' } = process.env;
const audio = new Blob([await readFile(process.argv[2])]);

async function send(path, init = {}, tries = 12) {
  const headers = { Authorization: `Bearer ${VOXGATE_API_KEY}`, ...init.headers };
  const response = await fetch(`${VOXGATE_URL}${path}`, { ...init, headers });
  if (response.ok) return response;
  const { error } = await response.json();
  const retryAfterSec = response.headers.get('Retry-After'); // only a busy gateway sends it
  if (retryAfterSec === null || tries === 1) throw new Error(`${error.kind} ${error.code}: ${error.message}`);
  console.error(`The gateway is busy (${error.held_by}); trying again in ${retryAfterSec} s`);
  await sleep(retryAfterSec * 1000);
  return send(path, init, tries - 1);
}

function transcribe(fields) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.append(name, value);
  body.append('file', audio, 'audio');
  return send('/v1/audio/transcriptions', { method: 'POST', body });
}
const postJson = (path, body) =>
  send(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

const { data: models } = await (await send('/v1/models')).json(); // what can serve now
const modelFor = (capability) => models.find((model) => model.capabilities.includes(capability))?.id;
const verbose = await transcribe({ response_format: 'verbose_json', timestamp_granularities: 'word' });
const { text, words } = await verbose.json();
console.log(`text: ${text.trim()}`);
for (const { word, start, end } of words) console.log(`word: ${start} to ${end} s ${word}`);

let unread = '';
for await (const chunk of (await transcribe({ stream: 'true' })).body.pipeThrough(new TextDecoderStream())) {
  const events = (unread + chunk).split('\n\n'); // an empty line ends an event
  unread = events.pop();
  for (const [, data] of events.join('\n').matchAll(/^data: (.*)$/gm)) {
    const { type, delta, error } = JSON.parse(data);
    if (type === 'transcript.text.delta') console.log(`delta: ${delta.trim()}`);
    if (type === 'error') throw new Error(error.message); // a failure after the answer began
  }
}

if (modelFor('tts')) {
  const speech = { model: modelFor('tts'), voice: 'alloy', input: text };
  await writeFile('speech.wav', (await postJson('/v1/audio/speech', speech)).body);
  console.log('speech: speech.wav');
}
if (modelFor('llm')) {
  const messages = [{ role: 'user', content: `Sum up in one sentence: ${text}` }];
  const answer = await postJson('/v1/chat/completions', { model: modelFor('llm'), messages });
  console.log(`chat: ${(await answer.json()).choices[0].message.content}`);
}
