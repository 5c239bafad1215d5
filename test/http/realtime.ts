/** A client of live sessions for tests, over a real WebSocket. */
import { WebSocket } from 'ws';
import { until } from '../until.ts';
import type { Gateway } from './harness.ts';

export interface Received {
  type: string;
  [field: string]: any;
}

export interface LiveClient extends AsyncDisposable {
  socket: WebSocket;
  /** All events so far. */
  events: Received[];
  /** The close code; null while the connection is open. */
  closed(): number | null;
  send(event: object): void;
  /** Sends samples, -1..1, in pieces of 100 ms. */
  speak(samples: Float32Array): void;
  /** The nth event of this type, from 1, as soon as it is there. */
  event(type: string, nth?: number): Promise<Received>;
}

export const COMPLETED = 'conversation.item.input_audio_transcription.completed';
export const FAILED = 'conversation.item.input_audio_transcription.failed';
export const DELTA = 'conversation.item.input_audio_transcription.delta';

export async function connectLive(
  { base }: Pick<Gateway, 'base'>,
  { query = '?intent=transcription', headers = {}, protocols = [] as string[] } = {},
): Promise<LiveClient> {
  const socket = new WebSocket(`${base.replace('http', 'ws')}/v1/realtime${query}`, protocols, { headers });
  const events: Received[] = [];
  let closed: number | null = null;
  socket.on('message', (data) => void events.push(JSON.parse(String(data))));
  socket.on('close', (code) => {
    closed = code;
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
    socket.once('unexpected-response', (_req, res) => {
      let body = '';
      res.on('data', (chunk) => {
        body += chunk;
      });
      res.on('end', () => reject(Object.assign(new Error(body), { status: res.statusCode })));
    });
  });
  socket.on('error', () => undefined);
  const send = (event: object) => socket.send(JSON.stringify(event));
  return {
    socket,
    events,
    closed: () => closed,
    send,
    speak(samples) {
      for (let at = 0; at < samples.length; at += 1600) send(append(samples.subarray(at, at + 1600)));
    },
    async event(type, nth = 1) {
      const found = () => events.filter((event) => event.type === type)[nth - 1];
      await until(`${type} ${nth} (${events.map((event) => event.type).join(' ')})`, () => !!found(), 20_000);
      return found() as Received;
    },
    async [Symbol.asyncDispose]() {
      socket.terminate();
    },
  };
}

export function append(samples: Float32Array) {
  const pcm = Int16Array.from(samples, (s) => Math.round(s * 32_767));
  const audio = Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength).toString('base64');
  return { type: 'input_audio_buffer.append', audio };
}

export const tone = (seconds: number): Float32Array =>
  Float32Array.from({ length: seconds * 16_000 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / 16_000));
export const silence = (seconds: number): Float32Array => new Float32Array(seconds * 16_000);

/** 16 kHz, so that a sample that is sent is one that is heard. */
export const at16kHz = (input: object = {}) => ({
  type: 'session.update',
  session: {
    type: 'transcription',
    audio: { input: { format: { type: 'audio/pcm', rate: 16_000 }, ...input } },
  },
});
