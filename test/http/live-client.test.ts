/** The client of `voxgate live` beside servers that are silent, stall, or speak something else. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { type WebSocket, WebSocketServer } from 'ws';
import { transcribeLive } from '../../src/cli/live-client.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { listening } from '../local-server.ts';

const { liveClient: WAITS } = BUDGETS;
const BRIEF = { ...WAITS, pingMs: 20, silenceMs: 400 };
const TRANSCRIPTION = 'conversation.item.input_audio_transcription';

/** A server that answers each message by a script. */
async function scripted(onMessage: (socket: WebSocket, type: string) => void, options = {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', ...options });
  server.on('connection', (socket) => {
    socket.on('error', () => undefined);
    socket.on('message', (data) => onMessage(socket, (JSON.parse(String(data)) as { type: string }).type));
  });
  await once(server, 'listening');
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    async [Symbol.asyncDispose]() {
      for (const client of server.clients) client.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Speech of so many pieces, which can be stopped. */
function spoken(pieces: number, bytes = 960) {
  const seen = { given: 0, stopped: false };
  async function* all() {
    for (; seen.given < pieces && !seen.stopped; seen.given += 1) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      yield Buffer.alloc(bytes);
    }
  }
  const stop = () => {
    seen.stopped = true;
  };
  return { seen, input: { rate: 24_000, bytes: all(), stop } };
}

type Input = Parameters<typeof transcribeLive>[0];

function hear(base: string, input: Input, waits: typeof WAITS = WAITS, failures: string[] = []) {
  const choices = { key: undefined, model: undefined, language: undefined, delay: undefined };
  const onFailure = (message: string) => void failures.push(message);
  return transcribeLive(input, { base, ...choices, onEvent: () => undefined, onFailure }, waits);
}

const say = (socket: WebSocket, ...events: object[]) => {
  for (const event of events) socket.send(JSON.stringify(event));
};
const accept = (socket: WebSocket, type: string) => {
  if (type === 'session.update') say(socket, { type: 'session.updated' });
};

test('a server that speaks something else is one sentence', async () => {
  await using other = await scripted((socket) => socket.send('hello'));
  const { input, seen } = spoken(10);
  await assert.rejects(hear(other.base, input), /does not speak the Realtime API$/);
  assert(seen.stopped);
});

test('a gateway below a path is asked there', async () => {
  await using other = await scripted((socket) => socket.send('hello'));
  const asked: (string | undefined)[] = [];
  other.server.on('connection', (_socket, { url }) => asked.push(url));
  await assert.rejects(hear(`${other.base}/voice/`, spoken(10).input));
  assert.deepEqual(asked, ['/voice/v1/realtime?intent=transcription']);
});

test('a server that falls silent, and one that reads no more, end the session', async () => {
  await using silent = await scripted(accept, { autoPong: false });
  const endless = spoken(Number.POSITIVE_INFINITY);
  await assert.rejects(
    hear(silent.base, endless.input, BRIEF),
    /^Error: The gateway has said nothing for 0.4 s$/,
  );
  assert(endless.seen.stopped);

  await using stalled = await scripted((socket, type) => {
    accept(socket, type);
    if (type === 'input_audio_buffer.append') socket.pause();
  });
  const large = spoken(Number.POSITIVE_INFINITY, 1024 ** 2);
  await assert.rejects(
    hear(stalled.base, large.input, BRIEF),
    /^Error: The gateway has said nothing for 0.4 s$/,
  );
  assert(large.seen.given < 100, `${large.seen.given} MiB were read for a server that reads nothing`);
});

test('a server that opens no session, and one that accepts no settings, are not waited for', async () => {
  await using refusing = await scripted(() => undefined);
  const { input, seen } = spoken(10);
  const short = { ...WAITS, openMs: 400 };
  await assert.rejects(hear(refusing.base, input, short), /did not accept the settings in time$/);
  assert.equal(seen.given, 0);

  await using deaf = await listening(createServer(() => undefined)); // accepts connections and answers none
  await assert.rejects(
    hear(deaf.base, spoken(10).input, short),
    /^Error: Cannot hear through \S+: .*timed out$/,
  );
});

test('a last text that never comes is waited for, for a while', async () => {
  await using slow = await scripted((socket, type) => {
    accept(socket, type);
    if (type === 'input_audio_buffer.commit') say(socket, { type: 'input_audio_buffer.committed' });
  });
  await assert.rejects(
    hear(slow.base, spoken(3).input, { ...WAITS, lastTextMs: 400 }),
    /^Error: The last text did not come within 0.4 s$/,
  );
});

test('an utterance that fails is told while the session goes on', async () => {
  const failures: string[] = [];
  await using busy = await scripted((socket, type) => {
    if (type === 'input_audio_buffer.commit')
      say(
        socket,
        { type: 'input_audio_buffer.committed' },
        { type: `${TRANSCRIPTION}.failed`, error: { code: 'slot_busy', message: 'The slot is busy' } },
        { type: 'error', error: { code: 'input_audio_buffer_commit_empty', message: 'nothing' } },
      );
    accept(socket, type);
  });
  await hear(busy.base, spoken(3).input, WAITS, failures);
  assert.deepEqual(failures, ['The slot is busy']);
});
