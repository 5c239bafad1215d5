/** Treats sound as numbers: it decodes, finds the peaks to draw, and writes a recording as a wav file. */
import { wavHeader } from './pcm.js';

const RATE = 16_000;
/** Decoded audio is held as 32-bit samples, so a long film would need gigabytes. */
const MAX_BYTES = 200 * 1024 * 1024;

/**
 * Decodes to mono samples at 16 kHz. They are resampled while decoding, so that an hour takes 230 MB at most for a
 * moment.
 * @returns null when this browser cannot decode the file
 */
export async function decode(blob) {
  if (blob.size > MAX_BYTES) return null;
  try {
    const audio = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await blob.arrayBuffer());
    const samples = audio.getChannelData(0);
    for (let c = 1; c < audio.numberOfChannels; c++) {
      const other = audio.getChannelData(c);
      for (let i = 0; i < samples.length; i++) samples[i] += (other[i] - samples[i]) / (c + 1);
    }
    return { samples, durationSec: audio.duration };
  } catch {
    return null;
  }
}

/** Takes the loudest sample of each of `count` equal parts, and scales the whole to 1. */
export function toPeaks(samples, count) {
  const peaks = new Float32Array(count);
  for (let i = 0; i < samples.length; i++) {
    const part = Math.min(count - 1, Math.floor((i * count) / samples.length));
    peaks[part] = Math.max(peaks[part], Math.abs(samples[i]));
  }
  const loudest = peaks.reduce((a, b) => Math.max(a, b), 0);
  return loudest > 0 ? peaks.map((peak) => peak / loudest) : peaks;
}

/** Writes 16-bit mono samples, which the gateway reads without other programs and in which players can seek. */
export function toWav(samples, name) {
  const pcm = new DataView(new ArrayBuffer(samples.length * 2));
  for (let i = 0; i < samples.length; i++) {
    pcm.setInt16(i * 2, Math.round(Math.max(-1, Math.min(1, samples[i])) * 32_767), true);
  }
  const header = wavHeader({ rate: RATE, channels: 1 }, pcm.byteLength);
  return new File([header, pcm], name, { type: 'audio/wav' });
}
