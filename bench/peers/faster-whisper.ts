/** Runs faster-whisper (int8, beam 1) in a Python process of its own, plain or batched. */
import { join } from 'node:path';
import { startJsonLines } from './json-lines.ts';
import { type Peer, type PeerOptions, ROOT, type TimedWord } from './peer.ts';
import { baseCheckpoint, ensureVenv } from './python.ts';

const SCRIPT = join(ROOT, 'bench/peers/faster_whisper_peer.py');

export function startFasterWhisper(options: PeerOptions): Promise<Peer> {
  return start('faster-whisper', options, []);
}

export function startFasterWhisperBatched(options: PeerOptions): Promise<Peer> {
  return start('faster-whisper batched', options, ['--batched']);
}

async function start(name: string, options: PeerOptions, flags: string[]): Promise<Peer> {
  const python = ensureVenv(options.venv);
  const model = options.model ?? baseCheckpoint(options.venv);
  const args = [SCRIPT, model, '--threads', String(options.threads), ...flags];
  const child = await startJsonLines(name, python, args);
  return {
    name,
    version: `${child.hello['faster-whisper']}, ctranslate2 ${child.hello.ctranslate2}, int8, beam 1${
      flags.length > 0
        ? ', BatchedInferencePipeline with its defaults (8 at once, voice activity filter)'
        : ''
    }`,
    async transcribe({ audio, language, vad = false, words = false }) {
      const request = { audio, language, vad, words };
      const run = await child.ask<{ wall_ms: number; first_ms: number; text: string; words: TimedWord[] }>(
        request,
      );
      return { wallMs: run.wall_ms, firstMs: run.first_ms, text: run.text, words: run.words };
    },
    cpuSec: child.cpuSec,
    peakMegabytes: child.peakMegabytes,
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
