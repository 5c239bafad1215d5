/**
 * Runs faster-whisper (int8, on a GPU float16) in a Python process of its own: greedy, with its default of five beams, or
 * batched.
 */
import { startJsonLines } from './json-lines.ts';
import type { Peer, PeerOptions, Run } from './peer.ts';
import { baseCheckpoint, benchPython, cudaPython } from './python.ts';

interface Answer extends Required<Pick<Run, 'text' | 'words' | 'language'>> {
  wall_ms: number;
  first_ms: number;
}

const BATCHED = ', BatchedInferencePipeline with its defaults (8 at once, voice activity filter)';

export async function startFasterWhisper(
  { threads, device = 'cpu', model = baseCheckpoint() }: PeerOptions,
  { beam = 1, batched = false } = {},
): Promise<Peer> {
  const name = `faster-whisper${batched ? ' batched' : ''}${beam === 1 ? '' : ` beam ${beam}`}`;
  const { python, settings } = device === 'cuda' ? cudaPython() : { python: benchPython(), settings: {} };
  const type = device === 'cuda' ? 'float16' : 'int8';
  const options = JSON.stringify({ model, threads, device, type, beam, batched });
  const child = await startJsonLines(name, python, ['peers/faster_whisper_peer.py', options], settings);
  const { 'faster-whisper': version, ctranslate2 } = child.hello;
  return {
    ...child,
    name,
    version: `${version}, ctranslate2 ${ctranslate2}, ${type}, beam ${beam}${batched ? BATCHED : ''}`,
    async transcribe({ audio, language, vad = false, words = false }) {
      const request = { audio, language, vad, words };
      const { wall_ms, first_ms, ...heard } = await child.ask<Answer>(request);
      return { wallMs: wall_ms, firstMs: first_ms, ...heard };
    },
  };
}
