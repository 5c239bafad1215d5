/**
 * Clients that were written for OpenAI's Realtime API hold a talk with the gateway, unchanged: a question for which the
 * model calls a tool, a story, and speech over the story. The speech server is a real one.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { nodeOfPackages, PACKAGES } from '../clients/npm.ts';
import { pythonBin } from '../clients/python.ts';
import { call, type DIALECTS, startBridge } from '../clients/twilio.ts';
import { heard } from '../http/harness.ts';
import { type Answer, chunk, DONE, says, startTalk, type Talk } from '../http/talk.ts';
import { installLocked } from '../locked-package.ts';
import { program } from '../program.ts';
import { until } from '../until.ts';
import { speechLacks, startSpeech, type Upstream } from '../upstreams/start.ts';
import { JFK } from '../wav.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const CLIENTS = join(ROOT, 'test/clients');
const TALKS = join(CLIENTS, 'talks');
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

/** What the chat daemon was asked at last. */
interface Message {
  role: string;
  content: string | null;
}

type Client = (base: string, key: string) => Promise<Seen>;

/** A client that is a program of its own. */
const runs =
  (command: string, ...args: string[]): Client =>
  async (base, key) => {
    const env = { ...process.env, OPENAI_AGENTS_DISABLE_TRACING: '1' };
    const options = { cwd: ROOT, timeout: LIMIT_MS, env };
    const { stdout } = await promisify(execFile)(command, [...args, base, key, samples], options);
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  };

/** Lets a client hold the talk, and looks at it from both sides. */
async function holdTalk(client: Client): Promise<Seen & { messages: Message[] }> {
  // The text of an utterance is asked for more than once, also while it lasts.
  const asked = () => talk.chat.asked.filter(({ messages }) => messages.at(-1)?.role !== undefined).length;
  const turn = () => Math.max(0, asked() - 1);
  await using talk: Talk = await startTalk({
    transcribe: async () => heard(TURNS[turn()] ?? ''),
    turns: () => 1, // some clients ask for semantic_vad unless they are told otherwise
    env: { SVC_API_KEY: 'right', SVC_TTS_UPSTREAM_URL: speech?.base ?? '' },
  });
  talk.chat.answer(answers);
  const seen = await client(`${talk.gateway.base}/v1`, 'right');
  assert.deepEqual(seen.errors ?? [], []);
  assert.deepEqual(seen.tools, ['clock']);
  const said = [seen.answers].flat().join(' ');
  assert.match(said, /It is "?noon"?\./);
  assert.match(said, /You are welcome\./);
  assert(seen.bytes > 16_000, `${seen.bytes} bytes of speech`);
  assert.equal(talk.chat.broken(), 1, 'the story was broken off');
  await until('the slot is free', () => talk.gateway.app.slot.status().holder === null);
  return { ...seen, messages: talk.chat.asked.at(-1).messages };
}

const python = async (of: 'clients' | 'deep', script: string) =>
  runs(join(await pythonBin(of), 'python'), join(CLIENTS, script));

test('the OpenAI package of PyPI holds a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  const seen = await holdTalk(await python('clients', 'openai_conversation.py'));
  assert.deepEqual(seen.statuses, ['completed', 'completed', 'cancelled', 'completed']);
});

/** The one of the oldest Node that the gateway runs on, and the newest. */
const NPM = {
  '6': () => runs(process.execPath, ...program('test/clients/openai-conversation.ts')),
  '7': () =>
    runs(
      nodeOfPackages(),
      ...['--import', 'tsx', '--import', join(PACKAGES, 'resolve.mjs')],
      join(CLIENTS, 'openai-conversation.ts'),
    ),
};

for (const [version, client] of Object.entries(NPM))
  test(`version ${version} of the OpenAI package of npm holds a talk`, async (t) => {
    if (lacks !== null) return t.skip(lacks);
    const { statuses } = await holdTalk(client());
    assert.deepEqual(statuses, ['completed', 'completed', 'cancelled', 'completed']);
  });

test('openai-agents holds a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  const { interruptions } = await holdTalk(await python('deep', 'talks/agents_conversation.py'));
  assert(interruptions !== undefined && interruptions >= 1);
});

test('pipecat holds a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  await holdTalk(await python('deep', 'talks/pipecat_conversation.py'));
});

test('LiveKit’s agents hold a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  const { interruptions } = await holdTalk(await python('deep', 'talks/livekit_conversation.py'));
  assert.equal(interruptions, 1);
});

test('@openai/agents-realtime holds a talk', async (t) => {
  if (lacks !== null) return t.skip(lacks);
  installLocked(TALKS);
  const { interruptions } = await holdTalk(runs(process.execPath, join(TALKS, 'agents-conversation.mjs')));
  assert(interruptions !== undefined && interruptions >= 1);
});

/** A sentence of a recording, as a telephone carries it. */
const telephoneVoice = () =>
  execFileSync('ffmpeg', [
    '-v',
    'error',
    '-ss',
    '8.1',
    '-t',
    '2.3',
    '-i',
    JFK,
    '-ac',
    '1',
    '-ar',
    '8000',
    '-f',
    'mulaw',
    '-',
  ]);

const phones =
  (dialect: keyof typeof DIALECTS): Client =>
  async (base, key) => {
    await using bridge = await startBridge(base, key, dialect);
    const { seen } = bridge;
    const caller = await call(bridge.url, telephoneVoice());
    /** All responses so far have ended, and the caller has heard the last one. */
    const answered = (responses: number) =>
      until(
        `${responses} answers`,
        () => seen.statuses.length === responses && caller.heard.since > 0 && !caller.isBusy(),
        LIMIT_MS,
      );
    caller.say();
    await answered(2);
    caller.say();
    await until('a second of the story is heard', () => caller.heard.since > 8000, LIMIT_MS);
    caller.say();
    await answered(4);
    await caller.hangUp();
    assert.equal(caller.clears(), 1);
    assert.equal(seen.truncated.length, 1);
    assert.deepEqual(seen.statuses, ['completed', 'completed', 'cancelled', 'completed']);
    return { ...seen, bytes: caller.heard.bytes };
  };

for (const dialect of ['ga', 'beta'] as const)
  test(`a telephone call through Twilio is a talk, with the names of the ${dialect} protocol`, async (t) => {
    if (lacks !== null) return t.skip(lacks);
    const { messages } = await holdTalk(phones(dialect));
    const story = messages.find(({ role, content }) => role === 'assistant' && /^And/.test(content ?? ''));
    assert.match(story?.content ?? '', /^And then they/, 'what the caller heard of the story');
  });
