/** Home Assistant's server for faster-whisper, asked by its own protocol: https://github.com/OHF-Voice/wyoming. */
import { spawn } from 'node:child_process';
import { dirname } from 'node:path';
import { connectWyoming, FORMAT } from '../../test/http/wyoming.ts';
import { until } from '../../test/until.ts';
import { endOf, freePort, type MeasuredProcess, measured } from '../common/processes.ts';
import { feed, type LiveClip, SAMPLES_A_MS } from '../live/clips.ts';
import type { LivePeer, LiveRun } from '../live/peer.ts';
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
async function hear(port: number, clip: LiveClip, packetMs: number): Promise<LiveRun> {
  await using client = await connectWyoming({ wyomingPort: port });
  const transcript = () => client.events.find(({ type }) => type === 'transcript');
  let foundAt: number | undefined;
  client.socket.on('data', () => {
    if (transcript() !== undefined) foundAt ??= performance.now();
  });
  client.send('transcribe', { language: 'en' });
  client.send('audio-start', FORMAT);
  await feed({
    samples: clip.samples.subarray(0, (clip.spokenEndMs + SILENCE_MS) * SAMPLES_A_MS),
    packetMs,
    send: (packet) => client.send('audio-chunk', FORMAT, new Uint8Array(packet.slice().buffer)),
  });
  const endedAt = performance.now();
  client.send('audio-stop');
  await until('a transcript', () => foundAt !== undefined || client.closed(), TEXT_LIMIT_MS);
  if (foundAt === undefined) throw new Error('wyoming-faster-whisper gave no transcript');
  const text = String(transcript()?.data.text);
  return { text, finalMs: [foundAt - endedAt], firstMs: null, contradicted: false, failures: [] };
}

async function listens(port: number): Promise<boolean> {
  const client = await connectWyoming({ wyomingPort: port }).catch(() => null);
  await client?.[Symbol.asyncDispose]();
  return client !== null;
}
