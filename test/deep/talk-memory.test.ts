/**
 * What an hour of talking leaves behind. The turns are those of an hour and come as fast as they can: answers in speech
 * and in text, speech over an answer, tools, messages that are cut and that are deleted, and a history at its bound.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { queryObjects } from 'node:v8';
import { assertFlat, heldAround } from '../faults/flat.ts';
import { heard, until } from '../http/harness.ts';
import type { LiveClient } from '../http/realtime.ts';
import {
  type Answer,
  AUDIO,
  chunk,
  DONE,
  isFree,
  say,
  says,
  startTalk,
  type Talk,
  talkTo,
} from '../http/talk.ts';

const skip = process.platform !== 'linux' && '/proc is on Linux only';
/** A turn for every nine seconds. */
const TURNS_OF_AN_HOUR = 400;
const SAID_SEC = 0.5;
const TURNS_OF_EACH = 5;
/** So few that the history is at its bound within the first tenth. */
const ITEMS = 50;
/** Connections that are kept open have timers: those of the gateway, of its client and of its upstreams. */
const MORE_TIMERS = 16;
/** The audio of a few answers. */
const MORE_BUFFER_BYTES = 4e6;

const calls: Answer = (res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const call = { index: 0, id: 'call_1', function: { name: 'clock', arguments: '{"zone":"UTC"}' } };
  res.end(chunk({ tool_calls: [call] }) + chunk({}, 'tool_calls') + DONE);
};
const story: Answer = (res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  res.write(chunk({ content: `${'Once upon a time there was a very long story. '.repeat(4)} And` }));
};
const answer = says('Hello', ' there. How are', ' you?');

/** What is said decides how the chat daemon answers. */
const answers: Answer = (res, body) => {
  const { role, content } = body.messages.at(-1);
  if (role === 'tool') return says('It is noon.')(res, body);
  if (/clock/.test(content)) return calls(res, body);
  return (/story/.test(content) ? story : answer)(res, body);
};

const TOOLS = [{ type: 'function', name: 'clock', parameters: { type: 'object' } }];
const writes = (client: LiveClient, text: string) => {
  const content = [{ type: 'input_text', text }];
  client.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } });
  client.send({ type: 'response.create' });
};
const done = async (client: LiveClient, status: string, nth = 1) => {
  const { response } = await client.event('response.done', nth);
  assert.equal(response.status, status, JSON.stringify(response.status_details));
  return response;
};

/** The turns, which follow one another. Each leaves no response behind. */
const KINDS: readonly ((client: LiveClient) => Promise<void>)[] = [
  async function answered(client) {
    say(client, SAID_SEC);
    await done(client, 'completed');
  },
  async function interrupted(client) {
    writes(client, 'A story.');
    await client.event(AUDIO);
    say(client, SAID_SEC);
    await done(client, 'cancelled');
    await done(client, 'completed', 2);
  },
  async function callsTool(client) {
    writes(client, 'What says the clock?');
    const [call] = (await done(client, 'completed')).output;
    assert.equal(call.name, 'clock');
    const item = { type: 'function_call_output', call_id: call.call_id, output: 'noon' };
    client.send({ type: 'conversation.item.create', item });
    client.send({ type: 'response.create' });
    await done(client, 'completed', 2);
  },
  async function cutAndDeleted(client) {
    say(client, SAID_SEC);
    const [message] = (await done(client, 'completed')).output;
    const common = { item_id: message.id, content_index: 0 };
    client.send({ type: 'conversation.item.truncate', ...common, audio_end_ms: 100 });
    await client.event('conversation.item.truncated');
    client.send({ type: 'conversation.item.delete', item_id: message.id });
    await client.event('conversation.item.deleted');
  },
];

async function takeTurns(talk: Talk, client: LiveClient, count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) {
    client.events.length = 0;
    await KINDS[turn % KINDS.length]?.(client);
    assert.equal(
      client.events.find(({ type }) => type === 'error'),
      undefined,
    );
    for (const kept of [talk.chat.asked, talk.speech.asked, talk.gateway.exchanges, talk.gateway.logged])
      kept.length = 0;
  }
}

const startFastTalk = async (): Promise<Talk> => {
  const talk = await startTalk({
    transcribe: async () => heard(' Hello there.'),
    budgets: { conversation: { items: ITEMS } },
    env: {
      SVC_LOG_LEVEL: 'error',
      SVC_OBS_METRICS_WINDOW_SEC: '1',
      SVC_OBS_PAYLOAD_ENABLED: '0',
    },
  });
  talk.chat.answer(answers);
  return talk;
};

/** The timers that there are, also those for which the process does not wait. */
function countTimers(): number {
  const timer = setTimeout(() => undefined);
  clearTimeout(timer);
  return Number(queryObjects(timer.constructor, { format: 'count' }));
}

const TALKS: Readonly<Record<string, (talk: Talk) => Promise<(turns: number) => Promise<void>>>> = {
  async 'one talk of an hour'(talk) {
    const client = await talkTo(talk, { tools: TOOLS });
    return (turns) => takeTurns(talk, client, turns);
  },
  async 'many short talks'(talk) {
    return async (turns) => {
      for (let left = turns; left > 0; left -= TURNS_OF_EACH) {
        await using client = await talkTo(talk, { tools: TOOLS });
        await takeTurns(talk, client, TURNS_OF_EACH);
      }
    };
  },
};

for (const [name, begin] of Object.entries(TALKS))
  test(`heap, memory, descriptors, threads and timers are flat over ${name}`, { skip }, async (t) => {
    await using talk = await startFastTalk();
    const go = await begin(talk);
    let before = 0;
    const around = await heldAround(talk.gateway, {
      warmUp: () => go(TURNS_OF_AN_HOUR / 10),
      async work() {
        before = countTimers();
        await go((TURNS_OF_AN_HOUR * 9) / 10);
      },
    });
    const grown = countTimers() - before;
    t.diagnostic(`${JSON.stringify(around)}, timers ${before} and ${grown} more`);
    assertFlat(around);
    const bytes = around.after.bufferBytes - around.before.bufferBytes;
    assert(bytes < MORE_BUFFER_BYTES, `${bytes} bytes more in buffers`);
    assert(grown <= MORE_TIMERS, `${grown} more timers`);
    assert.deepEqual(talk.gateway.uploads(), []);
    await until('the slot is free', () => isFree(talk));
  });
