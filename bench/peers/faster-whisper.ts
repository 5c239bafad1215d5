/**
 * Runs faster-whisper (int8, on a GPU float16) in a Python process of its own: greedy, with its default of five beams, or
 * batched.
 */
import { join } from 'node:path';
import { startJsonLines } from './json-lines.ts';
import { type Peer, type PeerOptions, ROOT, type Run } from './peer.ts';
import { baseCheckpoint, ensureCuda, ensureVenv } from './python.ts';

const SCRIPT = join(ROOT, 'bench/peers/faster_whisper_peer.py');

interface Answer extends Required<Pick<Run, 'text' | 'words' | 'language'>> {
  wall_ms: number;
  first_ms: number;
}

export function startFasterWhisper(options: PeerOptions): Promise<Peer> {
  return start('faster-whisper', options, { beam: 1 });
}

export function startFasterWhisperBeam5(options: PeerOptions): Promise<Peer> {
  return start('faster-whisper beam 5', options, { beam: 5 });
}

export function startFasterWhisperBatched(options: PeerOptions): Promise<Peer> {
  return start('faster-whisper batched', options, { beam: 1, batched: true });
}

/** Its batched mode with the beams that it has by default. */
export function startFasterWhisperBatchedBeam5(options: PeerOptions): Promise<Peer> {
  return start('faster-whisper batched beam 5', options, { beam: 5, batched: true });
}

async function start(
  name: string,
  options: PeerOptions,
  { beam, batched = false }: { beam: number; batched?: boolean },
): Promise<Peer> {
  const { device = 'cpu' } = options;
  const model = options.model ?? baseCheckpoint(options.venv);
  const { python, env } =
    device === 'cuda' ? ensureCuda(`${options.venv}-cuda`) : { python: ensureVenv(options.venv), env: {} };
  const type = device === 'cuda' ? 'float16' : 'int8';
  const flags = ['--threads', String(options.threads), '--beam', String(beam), '--device', device];
  const args = [SCRIPT, model, ...flags, '--compute-type', type, ...(batched ? ['--batched'] : [])];
  const child = await startJsonLines(name, python, args, env);
  return {
    name,
    version: `${child.hello['faster-whisper']}, ctranslate2 ${child.hello.ctranslate2}, ${type}, beam ${beam}${
      batched ? ', BatchedInferencePipeline with its defaults (8 at once, voice activity filter)' : ''
    }`,
    async transcribe({ audio, language, vad = false, words = false }) {
      const request = { audio, language, vad, words };
      const { wall_ms, first_ms, ...heard } = await child.ask<Answer>(request);
      return { wallMs: wall_ms, firstMs: first_ms, ...heard };
    },
    cpuSec: child.cpuSec,
    peakMegabytes: child.peakMegabytes,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
