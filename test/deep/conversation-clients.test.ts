/**
 * Clients that were written for OpenAI's Realtime API hold a talk with the gateway, unchanged: a question for which the
 * model calls a tool, a story, and speech over the story. The speech server is a real one. The chat daemon is a script,
 * whose words must arrive, and then a real one over SmolLM2, which says what it likes.
 */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
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
import {
  chatLacks,
  chatWeights,
  speechLacks,
  startChat,
  startSpeech,
  type Upstream,
} from '../upstreams/start.ts';
import { JFK } from '../wav.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const CLIENTS = join(ROOT, 'test/clients');
const TALKS = join(CLIENTS, 'talks');
const LIMIT_MS = 180_000;
const ZONES = ['UTC', 'CET'];
const dir = mkdtempSync(join(tmpdir(), 'voxgate-conversation-clients-'));
const samples = join(dir, 'utterance.pcm');

let speech: Upstream | undefined;
let smol: Upstream | undefined;
before(async () => {
  const tone = Int16Array.from({ length: 24_000 }, (_, i) =>
    Math.round(12_000 * Math.sin((i * 440 * 2 * Math.PI) / 24_000)),
  );
  writeFileSync(samples, Buffer.concat([Buffer.from(tone.buffer), Buffer.alloc(48_000)]));
  if (speechLacks() === null) speech = await startSpeech();
  if (chatLacks() === null) smol = await startChat(chatWeights());
});
after(async () => {
  await speech?.stop();
  await smol?.stop();
  rmSync(dir, { recursive: true, force: true });
});

/** What answers to the clients, and what must then have arrived. */
interface Daemon {
  lacks: string | null;
  answer: Answer;
  judge(seen: Seen, messages: Message[]): void | Promise<void>;
}

const callsClock: Answer = (res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const call = { index: 0, id: 'call_1', function: { name: 'clock', arguments: '{"zone":"UTC"}' } };
  res.end(chunk({ tool_calls: [call] }) + chunk({}, 'tool_calls') + DONE);
};

/** A story without an end. */
const tells: Answer = (res) => {
  res.writeHead(200, { 'Content-Type': 'text/event-stream' });
  const more = setInterval(() => res.write(chunk({ content: 'And then they went on. ' })), 200);
  res.on('close', () => clearInterval(more));
};

const asksTime = ({ role, content }: Message) => role === 'user' && /time/.test(content ?? '');
const asksStory = ({ role, content }: Message) => role === 'user' && /story/.test(content ?? '');

const script = (): Daemon => ({
  lacks: null,
  answer(res, body) {
    const last: Message = body.messages.at(-1);
    if (last.role === 'system') return says('Hello.')(res, body); // a client may begin with an answer to nothing
    if (last.role === 'tool') return says(`It is ${last.content}.`)(res, body);
    if (asksTime(last)) return callsClock(res, body);
    if (asksStory(last)) return tells(res, body);
    return says('You are welcome.')(res, body);
  },
  judge({ answers, tools, truncated }, messages) {
    assert.deepEqual(tools, [['clock', 'UTC']]);
    assert.match(answers.join(' '), /It is "?noon"?\./);
    assert.match(answers.join(' '), /You are welcome\./);
    if (truncated) assert.match(storyIn(messages), /^And then they/, 'what the caller heard of the story');
  },
});

const storyIn = (messages: Message[]) => messages[messages.findIndex(asksStory) + 1]?.content ?? '';
const wordsOf = (text: string) => text.match(/\w+/g) ?? [];

/**
 * SmolLM2, whose requests say what so small a model does not do by itself: it calls the tool when it is asked the time,
 * and its story does not end.
 */
function model(): Daemon {
  const wrote: Uint8Array[] = [];
  const stats = async () =>
    (await (await fetch(`${smol?.base}/stats`)).json()) as { running: number; aborted: number };
  const before = smol && stats();
  return {
    lacks: chatLacks(),
    async answer(res, body) {
      const last: Message = body.messages.at(-1);
      const steered = {
        ...body,
        model: basename(chatWeights(), '.gguf'),
        temperature: 0,
        ignore_eos: asksStory(last),
        ...(asksTime(last) && body.tool_choice === 'auto' && { tool_choice: 'required' }),
      };
      const gone = new AbortController();
      res.on('close', () => gone.abort());
      const request = { method: 'POST', body: JSON.stringify(steered), signal: gone.signal };
      try {
        const { status, body: pieces } = await fetch(`${smol?.base}/v1/chat/completions`, request);
        res.writeHead(status, { 'Content-Type': 'text/event-stream' });
        for await (const piece of pieces ?? []) {
          wrote.push(piece);
          if (!res.write(piece)) await once(res, 'drain', { signal: gone.signal });
        }
        res.end();
      } catch (error) {
        if (!gone.signal.aborted) throw error;
      }
    },
    async judge({ answers, tools, truncated }, messages) {
      assert.equal(tools.length, 1);
      assert.equal(tools[0]?.[0], 'clock');
      assert(ZONES.includes(tools[0]?.[1] ?? ''), `the zone ${tools[0]?.[1]}`);
      const contents = Buffer.concat(wrote)
        .toString()
        .matchAll(/"content":("(?:[^"\\]|\\.)*")/g);
      const text = Array.from(contents, ([, json = '""']) => JSON.parse(json)).join('');
      for (const answer of truncated ? [...answers, storyIn(messages)] : answers) {
        assert.notDeepEqual(wordsOf(answer), []);
        for (const word of wordsOf(answer)) assert(text.includes(word), `${word} in ${text}`);
      }
      const aborted = ((await before)?.aborted ?? 0) + 1;
      await until('the daemon has stopped', async () => {
        const now = await stats();
        return now.running === 0 && now.aborted === aborted;
      });
    },
  };
}

/** What is said; the first takes the chat daemon two requests. */
const TURNS = [' What time is it?', ' Tell me a story.', ' Thank you.'];

interface Seen {
  answers: string[];
  /** The calls: the name, and the zone that was asked for. */
  tools: string[][];
  bytes: number;
  errors?: string[];
  interruptions?: number;
  statuses?: string[];
  /** How much of an answer was heard, where the client says it. */
  truncated?: number[];
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
async function holdTalk(client: Client, daemon: Daemon): Promise<void> {
  // The text of an utterance is asked for more than once, also while it lasts.
  const asked = () => talk.chat.asked.filter(({ messages }) => messages.at(-1)?.role !== 'system').length;
  const turn = () => Math.max(0, asked() - 1);
  await using talk: Talk = await startTalk({
    transcribe: async () => heard(TURNS[turn()] ?? ''),
    turns: () => 1, // some clients ask for semantic_vad unless they are told otherwise
    env: { SVC_API_KEY: 'right', SVC_TTS_UPSTREAM_URL: speech?.base ?? '' },
  });
  talk.chat.answer(daemon.answer);
  const seen = await client(`${talk.gateway.base}/v1`, 'right');
  assert.deepEqual(seen.errors ?? [], []);
  assert(seen.bytes > 16_000, `${seen.bytes} bytes of speech`);
  assert.equal(talk.chat.broken(), 1, 'the story was broken off');
  if (seen.statuses) assert.deepEqual(seen.statuses, ['completed', 'completed', 'cancelled', 'completed']);
  else assert(seen.interruptions !== undefined && seen.interruptions >= 1);
  await daemon.judge(seen, talk.chat.asked.at(-1).messages);
  await until('the slot is free', () => talk.gateway.app.slot.status().holder === null);
}

const python = async (of: 'clients' | 'deep', script: string) =>
  runs(join(await pythonBin(of), 'python'), join(CLIENTS, script));

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
    return { ...seen, bytes: caller.heard.bytes };
  };

/** The npm package runs in two versions: the last for the oldest Node that the gateway supports, and the newest. */
const HOLDERS: Record<string, () => Client | Promise<Client>> = {
  'the OpenAI package of PyPI': () => python('clients', 'openai_conversation.py'),
  'version 6 of the OpenAI package of npm': () =>
    runs(process.execPath, ...program('test/clients/openai-conversation.ts')),
  'version 7 of the OpenAI package of npm': () =>
    runs(
      nodeOfPackages(),
      ...['--import', 'tsx', '--import', join(PACKAGES, 'resolve.mjs')],
      join(CLIENTS, 'openai-conversation.ts'),
    ),
  'openai-agents': () => python('deep', 'talks/agents_conversation.py'),
  pipecat: () => python('deep', 'talks/pipecat_conversation.py'),
  'LiveKit’s agents': () => python('deep', 'talks/livekit_conversation.py'),
  '@openai/agents-realtime'() {
    installLocked(TALKS);
    return runs(process.execPath, join(TALKS, 'agents-conversation.mjs'));
  },
  'a telephone call through Twilio': () => phones('ga'),
  'a telephone call through Twilio, with the names of the beta protocol': () => phones('beta'),
};

for (const [name, client] of Object.entries(HOLDERS))
  for (const [kind, daemon] of Object.entries({ 'a script': script, SmolLM2: model }))
    test(`${name} holds a talk with ${kind}`, async (t) => {
      const answering = daemon();
      const lacks = speechLacks() ?? answering.lacks;
      if (lacks !== null) return t.skip(lacks);
      await holdTalk(await client(), answering);
    });
