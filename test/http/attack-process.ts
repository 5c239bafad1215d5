/**
 * The other side of attack-scene.ts, in processes of their own, so that no side waits for the event loop of another: an
 * attacker, a prober that measures /health, and a bystander that shows how slow the machine itself is meanwhile.
 */
import { createServer, get } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { FORMAT, message } from './wyoming.ts';

const HOST = 'Host: localhost\r\n';
const GET = `GET /health HTTP/1.1\r\n${HOST}\r\n`;
const UPLOAD = `POST /v1/audio/transcriptions HTTP/1.1\r\n${HOST}Content-Type: multipart/form-data; boundary=x\r\n`;
const FILE = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF';

interface Reopened {
  afterMs?: number;
  /** Where the connection comes from. */
  localAddress?: string;
}

/** Opens a connection again `afterMs` after each close, and calls `use` with each. */
function again(port: number, use: (socket: Socket) => void, options: Reopened = {}): void {
  const { afterMs = 20, localAddress = '127.0.0.1' } = options;
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined).resume();
  socket.once('connect', () => use(socket));
  socket.once('close', () => setTimeout(again, afterMs, port, use, options));
}

/** Keeps `count` connections that begin with `first(i)` and then send `piece` every `everyMs`. */
function trickling(
  count: number,
  first: (i: number) => string,
  [piece, everyMs]: [string, number],
  options: Reopened = {},
) {
  return (port: number) => {
    for (let i = 0; i < count; i++)
      again(
        port,
        (socket) => {
          socket.write(first(i));
          const timer = setInterval(() => socket.write(piece), everyMs);
          socket.once('close', () => clearInterval(timer));
        },
        options,
      );
  };
}

/** Keeps `count` connections that send the next of `requests` at once. */
function flooding(count: number, requests: readonly string[]) {
  return (port: number) => {
    let next = 0;
    for (let i = 0; i < count; i++)
      again(port, (socket) => {
        socket.write(requests[next++ % requests.length] ?? '');
        setTimeout(() => socket.destroy(), 500).unref();
      });
  };
}

/** Opens connections in steps, so that the queue of the kernel does not refuse them. */
const idle = (count: number, first: string, afterMs: number) => (port: number) => {
  let opened = 0;
  const timer = setInterval(() => {
    for (let i = 0; i < 200 && opened < count; i++, opened++)
      again(port, (socket) => void socket.write(first), { afterMs });
    if (opened === count) clearInterval(timer);
  }, 20);
};

const field = (name: string) => `--x\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n1\r\n`;
const LARGE_UPLOAD = `${UPLOAD}Content-Length: 1000000\r\n\r\n${FILE}`;
const SESSION = `POST /admin/session HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n`;
const CHAT = `POST /v1/chat/completions HTTP/1.1\r\n${HOST}Content-Type: application/json\r\nPrefer: wait=20\r\n`;
/** Just below what is kept in memory, and never complete. */
const PARKED_BODY = `${CHAT}Content-Length: 1048575\r\n\r\n${' '.repeat(1_040_000)}`;
const WAITING = `${CHAT}Content-Length: 100\r\n\r\n`;
const form = (body: string) => `${UPLOAD}Content-Length: ${body.length + 5}\r\n\r\n${body}--x--`;

/** A frame of a client (RFC 6455, section 5.2), with a mask of zeros. */
function frame(opcode: number, payload: string | Buffer = '', isFinal = true): Buffer {
  const body = Buffer.from(payload);
  const head = Buffer.alloc(body.length < 126 ? 6 : body.length < 65_536 ? 8 : 14);
  head[0] = (isFinal ? 0x80 : 0) | opcode;
  head[1] = 0x80 | (head.length === 6 ? body.length : head.length === 8 ? 126 : 127);
  if (head.length === 8) head.writeUInt16BE(body.length, 2);
  if (head.length === 14) head.writeUInt32BE(body.length, 6);
  return Buffer.concat([head, body]);
}

const TEXT = 1;
const event = (type: string, fields: object = {}) => frame(TEXT, JSON.stringify({ type, ...fields }));
const AUDIO = Buffer.alloc(3200).toString('base64');
/** Of a message, so that no limit on their number ends the connection. */
const FRAGMENTS = 10_000;

/** What a client of a live session can send without end, in the shape in which it costs the gateway most. */
export const LIVE_FLOODS = {
  'session.update': event('session.update', { session: {} }),
  'transcription_session.update': event('transcription_session.update', { session: {} }),
  'input_audio_buffer.append': event('input_audio_buffer.append', { audio: AUDIO }),
  'input_audio_buffer.append without audio': event('input_audio_buffer.append', { audio: '' }),
  'input_audio_buffer.commit': event('input_audio_buffer.commit'),
  'input_audio_buffer.clear': event('input_audio_buffer.clear'),
  'unknown events': event('response.create'),
  'events that are refused': event('session.update', { session: { audio: { input: { format: 1 } } } }),
  'messages that are no JSON': frame(TEXT, '{'),
  'empty messages': frame(TEXT),
  'binary messages': frame(2, 'x'),
  pings: frame(9),
  pongs: frame(10),
  fragments: Buffer.concat([
    frame(TEXT, '', false),
    ...Array.from({ length: FRAGMENTS }, () => frame(0, 'x', false)),
    frame(0, ''),
  ]),
  'messages of many values': frame(TEXT, `[${'{},'.repeat(85_000)}0]`),
  'updates of many wrong values': event('session.update', { session: { include: Array(120_000).fill(1) } }),
  'updates of many levels': frame(
    TEXT,
    `{"type":"session.update","session":${'['.repeat(120_000)}${']'.repeat(120_000)}}`,
  ),
  'messages of 15 MiB': event('input_audio_buffer.append', { audio: 'A'.repeat(15 << 20) }),
};

/** Bytes that are written at once. */
const FLOOD_BYTES = 1 << 20;
const HANDSHAKE = `GET /v1/realtime HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;

/** Keeps `count` connections that send `frames` after `first`, one of them each, for as long as they are read. */
function streaming(count: number, first: string | Buffer, frames: readonly Buffer[], options: Reopened = {}) {
  const floods = frames.map((one) => Buffer.concat(Array(Math.ceil(FLOOD_BYTES / one.length)).fill(one)));
  return (port: number) => {
    let next = 0;
    for (let i = 0; i < count; i++)
      again(
        port,
        (socket) => {
          const flood = floods[next++ % floods.length] ?? Buffer.alloc(0);
          const send = () => {
            while (!socket.destroyed && socket.write(flood));
          };
          socket.write(first);
          socket.on('drain', send);
          send();
        },
        options,
      );
  };
}

const FROM_ANOTHER = { localAddress: '127.0.0.5' };
const live = (count: number, frames: readonly Buffer[], options: Reopened = FROM_ANOTHER) =>
  streaming(count, HANDSHAKE, frames, options);
const allFloods = Object.values(LIVE_FLOODS);
const liveFloods = Object.fromEntries(
  Object.entries(LIVE_FLOODS).map(([name, one]) => [`live ${name}`, live(30, [one])]),
) as Record<`live ${keyof typeof LIVE_FLOODS}`, (port: number) => void>;

const { lineBytes, dataBytes } = BUDGETS.wyoming;
const AUDIO_START = message('audio-start', FORMAT);
const line = (bytes: number) => `{"type":"x","y":"${'x'.repeat(bytes)}`;
/** Data as large as may be, made of as many of these values as have room. */
const manyValues = (type: string, field: string, value: string) => {
  const values = Array(Math.floor((dataBytes - 100) / (value.length + 1))).fill(value);
  const data = `{"${field}":[${values}]}`;
  return Buffer.from(`{"type":"${type}","data_length":${data.length}}\n${data}`);
};

/** What a client of Wyoming can send without end. Events of audio come after an `audio-start`. */
export const WYOMING_FLOODS = {
  'audio-chunk of a sample': message('audio-chunk', FORMAT, Buffer.alloc(2)),
  'audio-chunk without audio': message('audio-chunk', FORMAT),
  'audio-chunk of 15 MiB': message('audio-chunk', FORMAT, Buffer.alloc(15 << 20)),
  'audio-chunk of changing formats': Buffer.concat(
    [8000, 16_000, 44_100].map((rate) => message('audio-chunk', { ...FORMAT, rate }, Buffer.alloc(2))),
  ),
  'transcriptions without audio': Buffer.concat([message('audio-stop'), AUDIO_START]),
  'transcriptions of silence': Buffer.concat([
    message('audio-chunk', FORMAT, Buffer.alloc(3200)),
    message('audio-stop'),
    AUDIO_START,
  ]),
  describe: message('describe'),
  ping: message('ping', { text: 'x'.repeat(1000) }),
  'unknown events': message('x'),
  'events that are refused': message('transcribe', { name: 'none' }),
  'lines that are no JSON': Buffer.from('{\n'),
  'empty lines': Buffer.from('\n'),
  'lines without an end': Buffer.from('x'.repeat(lineBytes)),
  'long lines': Buffer.from(`${line(lineBytes - 100)}"}\n`),
  'data of many values': manyValues('x', 'y', '{}'),
  'data of many levels': manyValues('x', 'y', `${'['.repeat(1000)}${']'.repeat(1000)}`),
  'payloads that nobody wants': message('x', {}, Buffer.alloc(15 << 20)),
};
/** Those that are out of place within audio. */
const OUTSIDE_AUDIO = {
  transcribe: message('transcribe', { name: 'whisper-1', language: 'en' }),
  'transcribe with many names': manyValues('transcribe', 'transcript_names', '"x"'),
  'transcribe with many wrong names': manyValues('transcribe', 'transcript_names', '1'),
};

const toWyoming =
  (attack: (port: number) => void) =>
  (_port: number, wyomingPort: number): void =>
    attack(wyomingPort);
const wyoming = (frames: readonly Buffer[], options: Reopened = FROM_ANOTHER) =>
  toWyoming(streaming(30, AUDIO_START, frames, options));
const wyomingFloods = {
  ...Object.fromEntries(
    Object.entries(WYOMING_FLOODS).map(([name, one]) => [`Wyoming ${name}`, wyoming([one])]),
  ),
  ...Object.fromEntries(
    Object.entries(OUTSIDE_AUDIO).map(([name, one]) => [
      `Wyoming ${name}`,
      toWyoming(streaming(30, '', [one], FROM_ANOTHER)),
    ]),
  ),
} as Record<
  `Wyoming ${keyof typeof WYOMING_FLOODS | keyof typeof OUTSIDE_AUDIO}`,
  (port: number, wyomingPort: number) => void
>;
const allWyoming = Object.values(WYOMING_FLOODS);

export const ATTACKS = {
  ...liveFloods,
  ...wyomingFloods,
  'every Wyoming flood at once': wyoming(allWyoming),
  'every Wyoming flood at once from the same address': wyoming(allWyoming, {}),
  'Wyoming lines that trickle': toWyoming(trickling(64, () => line(100), ['x', 20], FROM_ANOTHER)),
  '1,000 Wyoming connections that say nothing': toWyoming(idle(1000, '', 5000)),
  '1,000 Wyoming connections that come again at once': toWyoming(idle(1000, 'GET / HTTP/1.1\n', 0)),
  'one live session of session.update': live(1, [LIVE_FLOODS['session.update']]),
  'every live flood at once': live(30, allFloods),
  'every live flood at once from the same address': live(30, allFloods, {}),
  'bodies that are parked': trickling(128, () => PARKED_BODY, [' ', 2000], FROM_ANOTHER),
  'a line of waiting requests without bodies': trickling(64, () => WAITING, ['', 2000], FROM_ANOTHER),
  'heads that trickle': trickling(300, () => `GET /health HTTP/1.1\r\n${HOST}X: `, ['x', 20]),
  'bodies that trickle': trickling(200, () => SESSION, [' ', 20]),
  'bodies that trickle on every connection': trickling(600, () => SESSION, [' ', 500], {
    localAddress: '127.0.0.2',
  }),
  'uploads that trickle': trickling(100, () => LARGE_UPLOAD, ['x', 50]),
  'uploads that trickle behind a proxy': trickling(100, () => LARGE_UPLOAD, ['x', 50]),
  'uploads that trickle from 100 addresses': trickling(
    100,
    (i) => LARGE_UPLOAD.replace(HOST, `${HOST}X-Forwarded-For: 198.51.100.${i}\r\n`),
    ['x', 50],
  ),
  '1,000 connections that say nothing': idle(1000, '', 5000),
  '10,000 connections that say nothing': idle(10_000, '', 5000),
  '1,000 connections that say nothing and come again at once': idle(1000, '', 0),
  '1,000 connections that ask once and stay': idle(1000, GET, 5000),
  'heads of a megabyte': flooding(20, [`GET / HTTP/1.1\r\n${HOST}X: ${'x'.repeat(1 << 20)}`]),
  'heads of 4,000 fields': flooding(20, [`GET / HTTP/1.1\r\n${HOST}${'a:\r\n'.repeat(4000)}\r\n`]),
  'forms of 10,000 fields': flooding(5, [
    form(Array.from({ length: 10_000 }, (_, i) => field(`f${i}`)).join('')),
    form(field('keywords[4294967294]').repeat(100)),
    form(field(`a${'[b]'.repeat(3000)}`)),
  ]),
  '1,000 requests without waiting': flooding(1, [GET.repeat(1000)]),
  'ten times 1,000 requests without waiting': flooding(10, [GET.repeat(1000)]),
  'lengths that are wrong': flooding(20, [
    `${UPLOAD}Content-Length: 10\r\n\r\n${FILE}${GET}`,
    `${UPLOAD}Content-Length: 18446744073709551616\r\n\r\n${FILE}`,
    `${UPLOAD}Content-Length: -1\r\n\r\n${FILE}`,
    `${UPLOAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\n${FILE}`,
    `${UPLOAD}Content-Length: 0x10\r\n\r\n${FILE}`,
  ]),
  'framings that contradict each other': flooding(20, [
    `${UPLOAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${GET}`,
    `${UPLOAD}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n${FILE}`,
    `${UPLOAD}Transfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(100_000)}\r\nx\r\n`,
    `${UPLOAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  ]),
  'wrong keys': flooding(20, [`GET /v1/models HTTP/1.1\r\n${HOST}Authorization: Bearer wrong\r\n\r\n`]),
} satisfies Record<string, (port: number, wyomingPort: number) => void>;

const LEAST_ASKED = 100;
const LONGEST_MS = 5000;

/** The time in ms until the answer to GET /health on a connection of its own has come. */
function ping(port: number): Promise<number> {
  const startedAt = performance.now();
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(LONGEST_MS);
    get({ port, host: '127.0.0.1', path: '/health', agent: false, signal }, (res) => {
      res.once('error', reject);
      res.resume().once('end', () => {
        if (res.statusCode === 200) resolve(performance.now() - startedAt);
        else reject(new Error(`/health answered ${res.statusCode}`));
      });
    }).once('error', reject);
  });
}

const p99 = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? 0;

const [, , role = '', port = '', other = ''] = process.argv;
if (process.send !== undefined && role !== '') {
  process.once('disconnect', () => process.exit());
  if (role === 'bystander') {
    const server = createServer((_req, res) => res.end('{"status":"ok"}'));
    server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
  } else if (role === 'prober') {
    const [health, bystander]: [number[], number[]] = [[], []];
    const failures: string[] = [];
    let isWanted = false;
    process.on('message', () => {
      isWanted = true;
    });
    process.send('ready');
    for (;;) {
      for (const [asks, times] of [
        [port, health],
        [other, bystander],
      ] as const)
        await ping(Number(asks)).then(
          (ms) => times.push(ms),
          (error) => failures.push(String(error)),
        );
      if (isWanted && health.length + failures.length >= LEAST_ASKED) {
        isWanted = false;
        process.send({ asked: health.length, healthMs: p99(health), bystanderMs: p99(bystander), failures });
        health.length = bystander.length = 0;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } else {
    ATTACKS[role as keyof typeof ATTACKS](Number(port), Number(other));
    process.send('ready');
  }
}
