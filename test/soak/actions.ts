/** What the clients of a soak do. Each action says which statuses it may get; any other is a failure of the gateway. */
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BadFile } from '../bad-files/file.ts';
import { lyingFlacs } from '../bad-files/flac.ts';
import { lyingWavs } from '../bad-files/wav-headers.ts';
import { form, toneWav } from '../http/harness.ts';
import { joinWavs } from '../wav.ts';
import type { Random } from './random.ts';

export interface Client {
  base: string;
  random: Random;
}

/**
 * The status of the answer, or the code of a 503; `left` when the client went on purpose, and `broken` when its
 * connection was cut.
 */
export type Outcome = number | string;

export interface Action {
  name: string;
  /** How often it is chosen, beside the others. */
  weight: number;
  run(client: Client): Promise<Outcome>;
  expected: readonly Outcome[];
}

const SHORT = toneWav(0.5);
const LONG = joinWavs(...Array.from({ length: 6 }, () => joinWavs(toneWav(1), toneWav(4, 0))));
const BAD: readonly BadFile[] = [...lyingWavs(), ...lyingFlacs()].filter(
  ({ bytes }) => bytes.length < 100_000,
);
const TRANSCRIPTIONS = '/v1/audio/transcriptions';
/** The slot is held, or the operator stops the request. */
const BUSY = ['slot_busy', 'stopped_by_operator'];

/** Reads an answer to its end. A stream that was cut off is `broken`. */
async function statusOf(answer: Promise<Response>): Promise<Outcome> {
  try {
    const response = await answer;
    const body = await response.text();
    return response.status === 503 ? JSON.parse(body).error.code : response.status;
  } catch {
    return 'broken';
  }
}

function transcribe(
  { base }: Client,
  file: Uint8Array,
  fields: Record<string, string>,
  signal?: AbortSignal,
) {
  const init: RequestInit = { method: 'POST', body: form(file, fields) };
  return fetch(base + TRANSCRIPTIONS, signal === undefined ? init : { ...init, signal });
}

async function leaveAfter(ms: number, run: (signal: AbortSignal) => Promise<unknown>): Promise<Outcome> {
  const leave = new AbortController();
  const timer = setTimeout(() => leave.abort(), ms);
  await run(leave.signal).catch(() => undefined);
  clearTimeout(timer);
  return 'left';
}

/** Sends the head of an upload, then as many bytes as `pieces` with pauses between them, and is gone. */
async function trickle({ base, random }: Client, pieces: number, pauseMs: number): Promise<Outcome> {
  const { port, hostname } = new URL(base);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.resume();
  const head = `POST ${TRANSCRIPTIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n`;
  socket.write(`${head}Content-Type: multipart/form-data; boundary=x\r\n\r\n`);
  socket.write('--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n');
  for (let i = 0; i < pieces && !socket.destroyed; i += 1) {
    socket.write(random.bytes(10));
    await sleep(pauseMs);
  }
  if (random.below(2) === 0) socket.resetAndDestroy();
  else socket.destroy();
  return 'left';
}

const get = (path: string) => (client: Client) => statusOf(fetch(client.base + path));
const post =
  (path: string, fields: Record<string, string> = {}) =>
  (client: Client) =>
    statusOf(fetch(client.base + path, { method: 'POST', body: form(null, fields) }));

const speak = (client: Client, signal?: AbortSignal) =>
  fetch(`${client.base}/v1/audio/speech`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ input: 'x'.repeat(client.random.below(5000)) }),
    ...(signal && { signal }),
  });
const chat = (client: Client) =>
  fetch(`${client.base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"chat","messages":[],"stream":true}',
  });

/** What the upstream of a soak does on purpose, and what the gateway makes of it. */
const UPSTREAM: readonly Outcome[] = [200, 429, 500, 502, 'broken', ...BUSY];

const ACTIONS: readonly Action[] = [
  {
    ...{ name: 'transcribe', weight: 12, expected: [200, ...BUSY] },
    run: (client) =>
      statusOf(
        transcribe(client, client.random.pick([SHORT, LONG]), {
          response_format: client.random.pick(['json', 'text', 'srt', 'vtt', 'verbose_json']),
          prompt: client.random.pick(['', 'sleep 5', 'sleep 50']),
        }),
      ),
  },
  {
    // A stream has the status 200 once it has begun, also when it ends with an error event.
    ...{ name: 'stream', weight: 6, expected: [200, ...BUSY] },
    run: (client) => statusOf(transcribe(client, LONG, { stream: 'true', prompt: 'sleep 20' })),
  },
  {
    ...{ name: 'bad file', weight: 10, expected: [200, 400, ...BUSY] },
    run: (client) => statusOf(transcribe(client, client.random.pick(BAD).bytes, {})),
  },
  {
    ...{ name: 'damaged file', weight: 4, expected: [200, 400, ...BUSY] },
    run(client) {
      const bytes = Buffer.from(SHORT);
      for (let i = 0; i < 20; i += 1) bytes[client.random.below(bytes.length)] = client.random.below(256);
      return statusOf(transcribe(client, bytes, {}));
    },
  },
  {
    ...{ name: 'bad field', weight: 2, expected: [400, ...BUSY] },
    run: (client) =>
      statusOf(transcribe(client, SHORT, { temperature: 'x'.repeat(1 + client.random.below(2000)) })),
  },
  {
    ...{ name: 'engine that fails', weight: 2, expected: [500, ...BUSY] },
    run: (client) => statusOf(transcribe(client, SHORT, { prompt: 'fail' })),
  },
  {
    ...{ name: 'leave while it runs', weight: 6, expected: ['left'] },
    run: (client) =>
      leaveAfter(client.random.below(200), async (signal) => {
        const answer = await transcribe(client, LONG, { prompt: 'sleep 200', stream: 'true' }, signal);
        await answer.arrayBuffer();
      }),
  },
  {
    ...{ name: 'leave in the middle of an upload', weight: 4, expected: ['left'] },
    run: (client) => trickle(client, client.random.below(5), client.random.below(20)),
  },
  {
    ...{ name: 'trickle an upload', weight: 1, expected: ['left'] },
    run: (client) => trickle(client, 20, 100),
  },
  { ...{ name: 'speech', weight: 6, expected: UPSTREAM }, run: (client) => statusOf(speak(client)) },
  { ...{ name: 'chat', weight: 6, expected: UPSTREAM }, run: (client) => statusOf(chat(client)) },
  {
    ...{ name: 'leave a speech call', weight: 3, expected: ['left'] },
    run: (client) =>
      leaveAfter(client.random.below(100), async (signal) => (await speak(client, signal)).arrayBuffer()),
  },
  { ...{ name: 'models', weight: 3, expected: [200] }, run: get('/v1/models') },
  { ...{ name: 'health', weight: 3, expected: [200] }, run: get('/health') },
  { ...{ name: 'metrics', weight: 2, expected: [200] }, run: get('/metrics') },
  { ...{ name: 'dashboard', weight: 2, expected: [200] }, run: get('/admin/fragments/summary') },
  { ...{ name: 'snapshot', weight: 2, expected: [200] }, run: get('/admin/api/metrics') },
  { ...{ name: 'unknown path', weight: 1, expected: [404] }, run: get('/nowhere') },
  {
    ...{ name: 'switch captures', weight: 2, expected: [200] },
    run(client) {
      const fields = {
        key: client.random.pick(['payload', 'metrics', 'access_log']),
        value: client.random.pick(['1', '0']),
      };
      return post('/admin/api/observability/toggle', fields)(client);
    },
  },
  {
    ...{ name: 'delete captures', weight: 1, expected: [200] },
    run: post('/admin/api/observability/clear-payload'),
  },
  { ...{ name: 'unload models', weight: 2, expected: [200] }, run: post('/admin/api/reset-asr-state') },
  { ...{ name: 'stop the slot', weight: 1, expected: [200] }, run: post('/admin/api/slot/stop') },
];

/** Chooses an action by its weight. */
export function nextAction(random: Random): Action {
  let left = random.below(ACTIONS.reduce((sum, { weight }) => sum + weight, 0));
  for (const action of ACTIONS) {
    left -= action.weight;
    if (left < 0) return action;
  }
  throw new Error('The weights do not add up');
}
