/** Makes sound for tests and benches. */

/** 11 s of speech at 16 kHz, which come with the sources of whisper.cpp. */
export const JFK = new URL('../node_modules/nodejs-whisper/cpp/whisper.cpp/samples/jfk.mp3', import.meta.url)
  .pathname;

/** Makes a RIFF header for 16 bits a sample; it has 44 bytes. */
export function wavHeader(dataBytes: number, sampleRate = 16_000, channels = 1): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(36 + dataBytes, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(sampleRate, 24);
  header.writeUInt32LE(sampleRate * channels * 2, 28);
  header.writeUInt16LE(channels * 2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36);
  header.writeUInt32LE(dataBytes, 40);
  return header;
}

/**
 * Makes a whole file.
 * @param samples 16-bit integers, or floats from -1 to 1, which are clipped there
 */
export function wav(samples: Int16Array | Float32Array, sampleRate = 16_000, channels = 1): Buffer {
  const data =
    samples instanceof Int16Array
      ? samples
      : Int16Array.from(samples, (s) => Math.round(Math.max(-1, Math.min(1, s)) * 32_767));
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat([wavHeader(data.byteLength, sampleRate, channels), bytes]);
}

/**
 * The sample at this place of a sound whose samples all have this magnitude: a square wave that begins each window of the
 * voice activity anew. Samples of one value would be no sound, but the offset of a microphone, which is removed.
 */
export const steady = (level: number, at: number) => (at % 32 < 16 ? level : -level);

/** Joins files of one rate, one after the other. */
export function joinWavs(...files: Buffer[]): Buffer {
  const data = Buffer.concat(files.map((file) => file.subarray(44)));
  const header = Buffer.from(files[0]?.subarray(0, 44) ?? wavHeader(0));
  header.writeUInt32LE(36 + data.length, 4);
  header.writeUInt32LE(data.length, 40);
  return Buffer.concat([header, data]);
}

/** The samples of a stereo file; a shorter channel ends in silence. */
export function interleave(left: Float32Array, right: Float32Array): Float32Array {
  const both = new Float32Array(2 * Math.max(left.length, right.length));
  for (let i = 0; i < both.length; i += 2) {
    both[i] = left[i / 2] ?? 0;
    both[i + 1] = right[i / 2] ?? 0;
  }
  return both;
}
