/**
 * Pauses in speech, from the sample clip of whisper.cpp and numbers that a seed gives. Run by itself, it writes them for
 * test/native/generate-turns.py: `node --import tsx test/native/turn-windows.ts FILE`.
 */
import { writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { loadNative } from '../../src/engine/addon.ts';
import { JFK } from '../wav.ts';

/** Eight seconds, what the model hears. */
export const TURN_SAMPLES = 128_000;
const PAUSE_SAMPLES = 3200;
const STEP_SAMPLES = 4000;

/** Windows that end with 200 ms of silence after speech which stops anywhere, then silence and noise alone. */
export function turnWindows(speech: Float32Array): Float32Array[] {
  const windows: Float32Array[] = [];
  for (let end = STEP_SAMPLES; end <= speech.length; end += STEP_SAMPLES) {
    const window = new Float32Array(TURN_SAMPLES);
    const heard = speech.subarray(Math.max(0, end - (TURN_SAMPLES - PAUSE_SAMPLES)), end);
    window.set(heard, TURN_SAMPLES - PAUSE_SAMPLES - heard.length);
    windows.push(window);
  }
  let state = 1;
  const noise = Float32Array.from({ length: TURN_SAMPLES }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state / 2 ** 32 - 0.5) / 5;
  });
  return [...windows, new Float32Array(TURN_SAMPLES), noise];
}

if (import.meta.url === pathToFileURL(argv[1] ?? '').href) {
  const file = await loadNative().openAudio(JFK, 'mp3');
  const windows = turnWindows((await file.read(30 * 16_000)) ?? new Float32Array());
  file.close();
  writeFileSync(argv[2] ?? 'windows.f32', Buffer.concat(windows.map(({ buffer }) => Buffer.from(buffer))));
}
