/** Runs on the audio thread: it turns the microphone's samples into pieces of 16-bit PCM at 24 kHz, 100 ms each. */
import { createResampler } from './resampler.js';

const RATE = 24_000;
const PIECE_SEC = 0.1;

class Pcm extends AudioWorkletProcessor {
  resample = createResampler(sampleRate, RATE);
  piece = new Int16Array(RATE * PIECE_SEC);
  filled = 0;

  process([[samples = new Float32Array()]]) {
    for (const sample of this.resample(samples)) {
      this.piece[this.filled++] = Math.round(Math.max(-1, Math.min(1, sample)) * 32_767);
      if (this.filled < this.piece.length) continue;
      this.port.postMessage(this.piece.buffer, [this.piece.buffer]);
      this.piece = new Int16Array(RATE * PIECE_SEC);
      this.filled = 0;
    }
    return true;
  }
}

registerProcessor('pcm', Pcm);
