/**
 * A talk with a chat daemon and a speech server that are real: llama.cpp over SmolLM2, and espeak-ng. The model calls a
 * tool, answers with what it said, and is interrupted. What is said comes from a script.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heard, startGateway } from '../http/harness.ts';
import { connectLive, type LiveClient, silence, tone } from '../http/realtime.ts';
import { until } from '../until.ts';
import { chatLacks, chatWeights, speechLacks, startChat, startSpeech } from '../upstreams/start.ts';

const LIMIT_MS = 120_000;
const AUDIO = 'response.output_audio.delta';
const TURNS = [' What is the weather in Paris?', ' Tell me a long story.', ' Thank you.'];
const CITY = { type: 'object', properties: { city: { type: 'string', maxLength: 20 } } };
const TOOLS = [
  { type: 'function', name: 'get_weather', description: 'The weather in a city', parameters: CITY },
  {
    type: 'function',
    name: 'hang_up',
    description: 'Ends the call',
    parameters: { type: 'object', properties: {} },
  },
];

const configure = (client: LiveClient, session: object) =>
  client.send({ type: 'session.update', session: { type: 'realtime', ...session } });
const say = (client: LiveClient) => {
  client.speak(tone(1));
  client.speak(silence(1));
};
/** The nth answer, for which a busy machine takes its time. */
async function done(client: LiveClient, nth: number) {
  const all = () => client.events.filter(({ type }) => type === 'response.done');
  await until(`answer ${nth}`, () => all().length >= nth, LIMIT_MS);
  return all()[nth - 1]?.response;
}

test('a model calls a tool, answers with its result, and is interrupted', {
  timeout: 4 * LIMIT_MS,
}, async (t) => {
  const lacks = speechLacks() ?? chatLacks();
  if (lacks !== null) return t.skip(lacks);
  await using speech = await startSpeech();
  await using chat = await startChat(0, chatWeights());
  let turn = 0;
  await using gateway = await startGateway({
    transcribe: async () => heard(TURNS[turn] ?? ''),
    env: { SVC_LLM_BACKEND_URL: chat.base, SVC_TTS_UPSTREAM_URL: speech.base, SVC_LIVE_WAIT_SEC: '60' },
  });
  await using client = await connectLive(gateway, { query: '?model=gpt-realtime' });
  const input = { format: { type: 'audio/pcm', rate: 16_000 }, transcription: { model: 'whisper-1' } };
  configure(client, {
    audio: { input },
    tools: TOOLS,
    tool_choice: { type: 'function', name: 'get_weather' },
  });
  say(client);
  const first = await done(client, 1);
  assert.equal(first.status, 'completed', JSON.stringify(first.status_details));
  const [call] = first.output;
  assert.deepEqual([call.type, call.name], ['function_call', 'get_weather']);
  t.diagnostic(`arguments ${call.arguments}`);
  assert.equal(typeof JSON.parse(call.arguments).city, 'string');

  configure(client, { tool_choice: 'none' });
  const item = {
    type: 'function_call_output',
    call_id: call.call_id,
    output: '{"sky":"sunny","celsius":21}',
  };
  client.send({ type: 'conversation.item.create', item });
  client.send({ type: 'response.create', response: { max_output_tokens: 40 } });
  const second = await done(client, 2);
  assert.match(second.status, /^(completed|incomplete)$/);
  t.diagnostic(`answer ${second.output[0].content[0].transcript}`);
  assert.match(second.output[0].content[0].transcript, /\w/);
  const spoken = () => client.events.filter(({ type }) => type === AUDIO).length;
  assert(spoken() > 0);

  turn = 1;
  const before = spoken();
  say(client);
  await until('the story is heard', () => spoken() > before, LIMIT_MS);
  turn = 2;
  say(client);
  assert.equal((await done(client, 3)).status, 'cancelled');
  assert.equal((await done(client, 4)).status, 'completed');
  const stats = (await (await fetch(`${chat.base}/stats`)).json()) as { running: number; aborted: number };
  assert.deepEqual([stats.running, stats.aborted], [0, 1], 'the daemon was told to stop');
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
});
