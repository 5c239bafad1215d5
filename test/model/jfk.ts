/** The recording of `JFK`, decoded by ffmpeg. */
import { execFileSync } from 'node:child_process';
import { JFK } from '../wav.ts';

/** 16 kHz mono, -1..1. */
export function samplesOfJfk(): Float32Array {
  const raw = ['-f', 's16le', '-ac', '1', '-ar', '16000', '-'];
  const bytes = execFileSync('ffmpeg', ['-v', 'error', '-i', JFK, ...raw]);
  return Float32Array.from({ length: bytes.length / 2 }, (_, i) => bytes.readInt16LE(2 * i) / 32_768);
}
