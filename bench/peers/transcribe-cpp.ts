/** transcribe.cpp, another implementation of all three families, which reads the same weights. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from '../common/machine.ts';
import { type JsonLinesProcess, startJsonLines } from './json-lines.ts';
import { ensureVenv } from './python.ts';

const PINS = ['transcribe-cpp==0.4.1', 'transcribe-cpp-native==0.4.1', 'numpy==2.4.6', 'gguf==0.19.0'];

export interface TranscribeCppAnswer {
  tokens: { id: number; start: number; end: number }[];
  /** With Whisper's times and SenseVoice's tags in it. */
  text: string;
  /** Milliseconds. */
  cpu: number;
}

/** Its Python has numpy and gguf too, with which weights are generated. */
export const transcribeCppPython = () => ensureVenv('transcribe-cpp-venv', PINS);

export function startTranscribeCpp(model: string, threads: number): Promise<JsonLinesProcess> {
  const script = 'peers/transcribe_cpp_peer.py';
  return startJsonLines('transcribe.cpp', transcribeCppPython(), [script, model, threads]);
}

/** Writes the weights of a Parakeet file in the format that it reads. */
export function writeParakeetGguf(source: string, target: string): void {
  execFileSync(transcribeCppPython(), [join(ROOT, 'bench/peers/parakeet_gguf.py'), source, target]);
}
