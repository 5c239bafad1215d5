/**
 * Clients that were written for OpenAI's Realtime API hold a talk with the gateway, unchanged: a question for which the
 * model calls a tool, a story, and speech over the story. The speech server is a real one.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { pythonBin } from '../clients/python.ts';
import { heard } from '../http/harness.ts';
import { type Answer, chunk, DONE, says, startTalk, type Talk } from '../http/talk.ts';
import { until } from '../until.ts';
import { speechLacks, startSpeech, type Upstream } from '../upstreams/start.ts';

const CLIENTS = new URL('../clients/', import.meta.url).pathname;
const LIMIT_MS = 90_000;
const dir = mkdtempSync(join(tmpdir(), 'voxgate-conversation-clients-'));
const samples = join(dir, 'utterance.pcm');
const lacks = speechLacks();

let speech: Upstream | undefined;
before(async () => {
  const tone = Int16Array.from({ length: 24_000 }, (_, i) =>
    Math.round(12_000 * Math.sin((i * 440 * 2 * Math.PI) / 24_000)),
  );
  writeFileSync(samples, Buffer.concat([Buffer.from(tone.buffer), Buffer.alloc(48_000)]));
  if (lacks === null) speech = await startSpeech();
});
after(async () => {
  await speech?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const callsClock: Answer = (res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const call = { index: 0, id: 'call_1', function: { name: 'clock', arguments: '{}' } };
  res.end(chunk({ tool_calls: [call] }) + chunk({}, 'tool_calls') + DONE);
};

/** A story without an end. */
const tells: Answer = (res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const more = setInterval(() => res.write(chunk({ content: 'And then they went on. ' })), 200);
  res.on('close', () => clearInterval(more));
};

const answers: Answer = (res, body) => {
  const { role, content = '' } = body.messages.at(-1) ?? {};
  if (role === undefined) return says('Hello.')(res, body); // a client may begin with an answer to nothing
  if (role === 'tool') return says(`It is ${content}.`)(res, body);
  if (/time/.test(content)) return callsClock(res, body);
  if (/story/.test(content)) return tells(res, body);
  return says('You are welcome.')(res, body);
};

/** What is said; the first takes the chat daemon two requests. */
const TURNS = [' What time is it?', ' Tell me a story.', ' Thank you.'];

interface Seen {
  answers: string[] | string;
  tools: string[];
  bytes: number;
  errors?: string[];
  interruptions?: number;
  statuses?: string[];
}

/** Lets a client hold the talk, and looks at it from both sides. */
async function holdTalk(command: string, args: string[]): Promise<Seen> {
  // The text of an utterance is asked for more than once, also while it lasts.
  const asked = () => talk.chat.asked.filter(({ messages }) => messages.at(-1)?.role !== undefined).length;
  const turn = () => Math.max(0, asked() - 1);
  await using talk: Talk = await startTalk({
    transcribe: async () => heard(TURNS[turn()] ?? ''),
    env: { SVC_API_KEY: 'right', SVC_TTS_UPSTREAM_URL: speech?.base ?? '' },
  });
  talk.chat.answer(answers);
  const options = {
    cwd: dir,
    timeout: LIMIT_MS,
    env: { ...process.env, OPENAI_AGENTS_DISABLE_TRACING: '1' },
  };
  const { stdout } = await promisify(execFile)(
    command,
    [...args, `${talk.gateway.base}/v1`, 'right', samples],
    options,
  );
  const seen: Seen = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  assert.deepEqual(seen.errors ?? [], []);
  assert.deepEqual(seen.tools, ['clock']);
  const said = [seen.answers].flat().join(' ');
  assert.match(said, /It is "?noon"?\./);
  assert.match(said, /You are welcome\./);
  assert(seen.bytes > 48_000, `${seen.bytes} bytes of speech`);
  assert.equal(talk.chat.broken(), 1, 'the story was broken off');
  await until('the slot is free', () => talk.gateway.app.slot.status().holder === null);
  return seen;
}

const python = async (of: 'clients' | 'talks') => join(await pythonBin(of), 'python');

test('the OpenAI package of PyPI holds a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  const seen = await holdTalk(await python('clients'), [join(CLIENTS, 'openai_conversation.py')]);
  assert.deepEqual(seen.statuses, ['completed', 'completed', 'cancelled', 'completed']);
});

test('openai-agents holds a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  const script = join(CLIENTS, 'talks/agents_conversation.py');
  const { interruptions } = await holdTalk(await python('talks'), [script]);
  assert(interruptions !== undefined && interruptions >= 1);
});

test('pipecat holds a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  await holdTalk(await python('talks'), [join(CLIENTS, 'talks/pipecat_conversation.py')]);
});
