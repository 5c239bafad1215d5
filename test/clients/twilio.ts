/**
 * A telephone call through Twilio's Media Streams: a bridge to a conversation, as Twilio's example for OpenAI's Realtime
 * API is one, and a caller on the other side of it, who hears in real time.
 * The messages: https://www.twilio.com/docs/voice/media-streams/websocket-messages
 */
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { WebSocket, WebSocketServer } from 'ws';

const CLOCK = {
  type: 'function',
  name: 'clock',
  description: 'The time of day.',
  parameters: {
    type: 'object',
    properties: { zone: { type: 'string', enum: ['UTC', 'CET'] } },
    required: ['zone'],
  },
};

/** What the two generations of OpenAI's protocol name otherwise. */
export const DIALECTS = {
  ga: {
    headers: {},
    prefix: 'response.output_audio',
    session: {
      type: 'realtime',
      tools: [CLOCK],
      audio: {
        input: { format: { type: 'audio/pcmu' }, turn_detection: { type: 'server_vad' } },
        output: { format: { type: 'audio/pcmu' }, voice: 'alloy' },
      },
    },
  },
  beta: {
    headers: { 'OpenAI-Beta': 'realtime=v1' },
    prefix: 'response.audio',
    session: {
      modalities: ['text', 'audio'],
      tools: [CLOCK],
      input_audio_format: 'g711_ulaw',
      output_audio_format: 'g711_ulaw',
      turn_detection: { type: 'server_vad' },
      voice: 'alloy',
      temperature: 0.8,
    },
  },
};

export interface Bridge extends AsyncDisposable {
  url: string;
  seen: { answers: string[]; tools: string[][]; errors: string[]; statuses: string[]; truncated: number[] };
}

/** @param base address of a gateway, with /v1 */
export async function startBridge(
  base: string,
  key: string,
  dialect: keyof typeof DIALECTS,
): Promise<Bridge> {
  const seen: Bridge['seen'] = { answers: [], tools: [], errors: [], statuses: [], truncated: [] };
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  server.on('connection', (phone) => connectCall(phone, { base, key, dialect, seen }));
  await once(server, 'listening');
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async [Symbol.asyncDispose]() {
      for (const phone of server.clients) phone.terminate();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Call {
  base: string;
  key: string;
  dialect: keyof typeof DIALECTS;
  seen: Bridge['seen'];
}

function connectCall(phone: WebSocket, { base, key, dialect, seen }: Call): void {
  const { headers, prefix, session } = DIALECTS[dialect];
  const url = `${base.replace('http', 'ws')}/realtime?model=gpt-realtime`;
  const model = new WebSocket(url, { headers: { Authorization: `Bearer ${key}`, ...headers } });
  const ask = (event: object) => {
    if (model.readyState === WebSocket.OPEN) model.send(JSON.stringify(event));
  };
  /** The audio that the caller has been sent, until it is said to be played. */
  const playing = { item: '', since: 0, marks: 0 };
  let streamSid = '';
  let now = 0;
  const tell = (event: string, fields = {}) => phone.send(JSON.stringify({ event, streamSid, ...fields }));

  function interrupt(): void {
    if (playing.marks === 0) return;
    const audio_end_ms = now - playing.since;
    ask({ type: 'conversation.item.truncate', item_id: playing.item, content_index: 0, audio_end_ms });
    tell('clear');
    Object.assign(playing, { item: '', marks: 0 });
  }

  function play(item: string, payload: string): void {
    if (playing.item !== item) Object.assign(playing, { item, since: now });
    tell('media', { media: { payload } });
    tell('mark', { mark: { name: 'part' } });
    playing.marks += 1;
  }

  function useTools(output: { type: string; name: string; call_id: string; arguments: string }[]): void {
    const calls = output.filter(({ type }) => type === 'function_call');
    for (const { name, call_id, arguments: json } of calls) {
      seen.tools.push([name, JSON.parse(json).zone]);
      ask({
        type: 'conversation.item.create',
        item: { type: 'function_call_output', call_id, output: 'noon' },
      });
    }
    if (calls.length > 0) ask({ type: 'response.create' });
  }

  model.on('open', () => ask({ type: 'session.update', session }));
  model.on('message', (data) => {
    const event = JSON.parse(String(data));
    if (event.type === `${prefix}.delta`) play(event.item_id, event.delta);
    if (event.type === `${prefix}_transcript.done`) seen.answers.push(event.transcript);
    if (event.type === 'input_audio_buffer.speech_started') interrupt();
    if (event.type === 'conversation.item.truncated') seen.truncated.push(event.audio_end_ms);
    if (event.type === 'error') seen.errors.push(event.error.message);
    if (event.type !== 'response.done') return;
    seen.statuses.push(event.response.status);
    useTools(event.response.output);
  });
  model.on('error', ({ message }) => void seen.errors.push(message));
  model.on('close', () => phone.close());
  phone.on('message', (data) => {
    const { event, start, media } = JSON.parse(String(data));
    if (event === 'start') streamSid = start.streamSid;
    if (event === 'mark') playing.marks = Math.max(0, playing.marks - 1);
    if (event !== 'media') return;
    now = Number(media.timestamp);
    ask({ type: 'input_audio_buffer.append', audio: media.payload });
  });
  phone.on('close', () => model.close());
}

const FRAME_MS = 20;
const FRAME_BYTES = 160; // mu-law of 8 kHz
const SILENCE = Buffer.alloc(FRAME_BYTES, 0xff);

export interface Caller {
  say(): void;
  /** True while something said is still on its way, or something heard still plays. */
  isBusy(): boolean;
  /** Bytes of mu-law that were heard since the last `clear`, and in all. */
  heard: { since: number; bytes: number };
  /** How often the bridge told Twilio to forget what it had not played. */
  clears(): number;
  hangUp(): Promise<void>;
}

/** @param voice mu-law of 8 kHz, which the caller says */
export async function call(url: string, voice: Buffer): Promise<Caller> {
  const socket = new WebSocket(url);
  await once(socket, 'open');
  const heard = { since: 0, bytes: 0 };
  /** Audio and marks in the order in which they came. */
  let line: (Buffer | { mark: object })[] = [];
  let saying: Buffer = Buffer.alloc(0);
  let clears = 0;
  let frames = 0;
  let sequence = 0;
  const streamSid = 'MZ00000000000000000000000000000001';
  const send = (event: string, fields: object) => {
    sequence += 1;
    socket.send(JSON.stringify({ event, sequenceNumber: String(sequence), streamSid, ...fields }));
  };

  /** Gives back the marks that are reached, and hears up to one frame of what comes next. */
  function hear(): void {
    let left = FRAME_BYTES;
    while (line.length > 0) {
      const [next] = line;
      if (next instanceof Buffer) {
        if (left === 0) return;
        const part = next.subarray(0, left);
        heard.since += part.length;
        heard.bytes += part.length;
        left -= part.length;
        if (part.length === next.length) line.shift();
        else line[0] = next.subarray(part.length);
      } else {
        line.shift();
        send('mark', next ?? {});
      }
    }
  }

  function speak(): void {
    const frame = Buffer.concat([saying.subarray(0, FRAME_BYTES), SILENCE]).subarray(0, FRAME_BYTES);
    saying = saying.subarray(FRAME_BYTES);
    frames += 1;
    const place = { track: 'inbound', chunk: String(frames), timestamp: String(frames * FRAME_MS) };
    send('media', { media: { ...place, payload: frame.toString('base64') } });
  }

  socket.on('message', (data) => {
    const { event, media, mark } = JSON.parse(String(data));
    if (event === 'media') line.push(Buffer.from(media.payload, 'base64'));
    if (event === 'mark') line.push({ mark });
    if (event !== 'clear') return;
    clears += 1;
    heard.since = 0;
    const marks = line.filter((part) => !(part instanceof Buffer));
    line = [];
    for (const mark of marks) send('mark', mark);
  });
  socket.send(JSON.stringify({ event: 'connected', protocol: 'Call', version: '1.0.0' }));
  const callSid = 'CA00000000000000000000000000000001';
  const accountSid = 'AC00000000000000000000000000000001';
  const mediaFormat = { encoding: 'audio/x-mulaw', sampleRate: 8000, channels: 1 };
  const start = { accountSid, callSid, streamSid, tracks: ['inbound'], mediaFormat, customParameters: {} };
  send('start', { start });
  const began = performance.now();
  const clock = setInterval(() => {
    // A busy machine is late, and then sends what is due at once.
    while (socket.readyState === WebSocket.OPEN && (frames + 1) * FRAME_MS <= performance.now() - began) {
      speak();
      hear();
    }
  }, FRAME_MS);
  socket.on('close', () => clearInterval(clock));
  return {
    say() {
      saying = voice;
      heard.since = 0;
    },
    isBusy: () => saying.length > 0 || line.length > 0,
    heard,
    clears: () => clears,
    async hangUp() {
      send('stop', { stop: { accountSid, callSid } });
      socket.close();
      await once(socket, 'close');
    },
  };
}
