/**
 * Home Assistant's server for faster-whisper, asked by its own protocol: https://github.com/OHF-Voice/wyoming. Each
 * message is a line of JSON, then its data as JSON, then its payload.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { until } from '../../test/until.ts';
import { endOf, freePort, type MeasuredProcess, measured } from '../common/processes.ts';
import { feed, SAMPLES_A_MS } from '../live/clips.ts';
import type { LivePeer } from '../live/peer.ts';
import { baseCheckpoint, ensureVenv } from './python.ts';

const VERSION = '3.8.1';
const PINS: readonly string[] = [
  `wyoming-faster-whisper==${VERSION}`,
  'wyoming==1.10.2',
  'faster-whisper==1.2.1',
  'ctranslate2==4.8.5',
];
/** The silence after which the client ends its audio, ms; that of the gateway's sessions. */
const SILENCE_MS = 500;
const FORMAT = { rate: 16_000, width: 2, channels: 1 };
const START_LIMIT_MS = 120_000;
const TEXT_LIMIT_MS = 60_000;

export interface WyomingProcess extends MeasuredProcess {
  version: string;
  peer: LivePeer;
}

export async function startWyoming(threads: number): Promise<WyomingProcess> {
  const python = ensureVenv('wyoming-venv', PINS);
  const port = await freePort();
  const flags = {
    uri: `tcp://127.0.0.1:${port}`,
    model: baseCheckpoint(),
    'data-dir': dirname(dirname(python)),
    language: 'en',
    'compute-type': 'int8',
    'cpu-threads': String(threads),
    'stt-library': 'faster-whisper',
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn(python, ['-m', 'wyoming_faster_whisper', ...args, '--local-files-only'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HF_HUB_OFFLINE: '1' },
  });
  const figures = measured(child);
  const said = endOf(child.stderr);
  try {
    await until('wyoming-faster-whisper listens', () => listens(port), START_LIMIT_MS);
  } catch (error) {
    await figures[Symbol.asyncDispose]();
    throw new Error(`wyoming-faster-whisper did not start: ${said()}`, { cause: error });
  }
  return {
    ...figures,
    version: `wyoming-faster-whisper ${VERSION}, ctranslate2 4.8.5, base int8, beam 5 (its default)`,
    peer: { name: 'wyoming-faster-whisper', hear: (clip, packetMs) => hear(port, clip, packetMs) },
  };
}

/** The client finds the end of the speech, as Home Assistant does; the end of the clip's speech is known here. */
async function hear(...[port, clip, packetMs]: [number, ...Parameters<LivePeer['hear']>]) {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.on('error', () => undefined); // a broken connection is noticed by the missing transcript
  try {
    const heard = transcript(socket);
    send(socket, 'transcribe', { language: 'en' });
    send(socket, 'audio-start', FORMAT);
    await feed({
      samples: clip.samples.subarray(0, (clip.spokenEndMs + SILENCE_MS) * SAMPLES_A_MS),
      packetMs,
      send: (packet) => send(socket, 'audio-chunk', FORMAT, packet),
    });
    const endedAt = performance.now();
    send(socket, 'audio-stop', {});
    const { at, text } = await heard;
    return { text, finalMs: [at - endedAt], firstMs: null, contradicted: false, failures: [] };
  } finally {
    socket.destroy();
  }
}

function send(socket: Socket, type: string, data: object, payload?: Int16Array): void {
  const length = payload === undefined ? {} : { payload_length: payload.byteLength };
  socket.write(`${JSON.stringify({ type, data, ...length })}\n`);
  if (payload !== undefined) socket.write(new Uint8Array(payload.slice().buffer));
}

/** The messages of an answer have no payload, and their data stands behind the line. */
async function transcript(socket: Socket): Promise<{ at: number; text: string }> {
  let received = Buffer.alloc(0);
  let found: { at: number; text: string } | null = null;
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (let end = received.indexOf('\n'); end >= 0; end = received.indexOf('\n')) {
      const { type, data, data_length: length = 0 } = JSON.parse(received.subarray(0, end).toString());
      if (received.length < end + 1 + length) return;
      const behind = received.subarray(end + 1, end + 1 + length).toString();
      received = received.subarray(end + 1 + length);
      const { text } = { ...data, ...(length > 0 && JSON.parse(behind)) };
      if (type === 'transcript') found = { at: performance.now(), text: String(text) };
    }
  });
  await until('a transcript', () => found !== null || socket.closed, TEXT_LIMIT_MS);
  if (found === null) throw new Error('wyoming-faster-whisper gave no transcript');
  return found;
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const answer = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return answer;
}
