/** A client of Wyoming for tests, over a bare socket, so that it can also break the protocol. */
import { connect, type Socket } from 'node:net';
import { until } from '../until.ts';
import type { Gateway } from './harness.ts';

export interface Heard {
  type: string;
  data: Record<string, any>;
  /** Absent where there is none. */
  payload?: Buffer;
}

export interface WyomingClient extends AsyncDisposable {
  socket: Socket;
  /** All events so far. */
  events: Heard[];
  /** True when the gateway has closed the connection. */
  closed(): boolean;
  send(type: string, data?: object, payload?: Uint8Array): void;
  /** Sends samples, -1..1, as 16 kHz in pieces of 100 ms, with the events around them. */
  say(samples: Float32Array): void;
  /** The nth event of this type, from 1, as soon as it is there. */
  event(type: string, nth?: number): Promise<Heard['data']>;
}

export const FORMAT = { rate: 16_000, width: 2, channels: 1 };

export const pcm16 = (samples: Float32Array): Uint8Array =>
  new Uint8Array(Int16Array.from(samples, (sample) => Math.round(sample * 32_767)).buffer);

/** The bytes of a message as the reference writes them: the data after the line. */
export function message(type: string, data: object = {}, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const body = Buffer.from(Object.keys(data).length > 0 ? JSON.stringify(data) : '');
  const line = {
    type,
    version: '1.10.2',
    ...(body.length > 0 && { data_length: body.length }),
    ...(payload.length > 0 && { payload_length: payload.length }),
  };
  return Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), body, payload]);
}

export async function connectWyoming({ wyomingPort }: Pick<Gateway, 'wyomingPort'>): Promise<WyomingClient> {
  const socket = connect(wyomingPort, '127.0.0.1');
  const events: Heard[] = [];
  let rest = Buffer.alloc(0);
  let isClosed = false;
  socket.on('data', (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const end = rest.indexOf('\n');
      if (end < 0) return;
      const {
        type,
        data_length: length = 0,
        payload_length: audio = 0,
      } = JSON.parse(rest.subarray(0, end).toString());
      const body = end + 1 + length;
      if (rest.length < body + audio) return;
      const data = length > 0 ? JSON.parse(rest.subarray(end + 1, body).toString()) : {};
      events.push({ type, data, ...(audio > 0 && { payload: rest.subarray(body, body + audio) }) });
      rest = rest.subarray(body + audio);
    }
  });
  socket.on('end', () => {
    isClosed = true;
  });
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('error', () => undefined);
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  const send = (type: string, data: object = {}, payload: Uint8Array = new Uint8Array(0)) =>
    void socket.write(message(type, data, payload));
  return {
    ...{ socket, events, send },
    closed: () => isClosed,
    say(samples) {
      send('audio-start', FORMAT);
      for (let at = 0; at < samples.length; at += 1600)
        send('audio-chunk', FORMAT, pcm16(samples.subarray(at, at + 1600)));
      send('audio-stop');
    },
    async event(type, nth = 1) {
      const found = () => events.filter((event) => event.type === type)[nth - 1];
      const seen = () => JSON.stringify(events).slice(0, 500);
      await until(`${type} ${nth}`, () => found() !== undefined, 20_000).catch((error) => {
        throw new Error(`${error.message}: ${seen()}`);
      });
      return (found() as Heard).data;
    },
    async [Symbol.asyncDispose]() {
      socket.destroy();
    },
  };
}
