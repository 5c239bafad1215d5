/** Runs on the audio thread: it turns the microphone's samples into pieces of 16-bit PCM, 100 ms each. */
const PIECE_SEC = 0.1;

class Pcm extends AudioWorkletProcessor {
  piece = new Int16Array(sampleRate * PIECE_SEC);
  filled = 0;

  process([[samples = []]]) {
    for (const sample of samples) {
      this.piece[this.filled++] = Math.round(Math.max(-1, Math.min(1, sample)) * 32_767);
      if (this.filled < this.piece.length) continue;
      this.port.postMessage(this.piece.buffer, [this.piece.buffer]);
      this.piece = new Int16Array(sampleRate * PIECE_SEC);
      this.filled = 0;
    }
    return true;
  }
}

registerProcessor('pcm', Pcm);
