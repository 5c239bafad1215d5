/** Makes the smallest weights of each family, so that a gateway loads and computes in milliseconds. */
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeSyntheticModel } from '../../../bench/growth/synthetic-model.ts';
import { writeSilero } from '../../../src/models/import/silero-ggml.ts';
import { storedZip } from '../../torch-file.ts';

/** The family of each model that is on disk. */
export const FAMILIES: Readonly<Record<string, string>> = {
  'voice-activity': 'silero',
  'multilingual-base': 'whisper',
  european: 'parakeet',
  cjk: 'sensevoice',
};
/** The model that a hub has and the disk has not. */
export const FETCHED = 'multilingual-tiny';

/** The number of float32 values in each storage of Silero's archive. */
const SILERO: Readonly<Record<number, number>> = {
  ...{ 2: 258 * 256, 3: 128 * 129 * 3, 4: 128, 5: 64 * 128 * 3, 6: 64, 7: 64 * 64 * 3, 8: 64 },
  ...{ 9: 128 * 64 * 3, 10: 128, 11: 512 * 128, 12: 512 * 128, 13: 512, 14: 512, 15: 128, 16: 1 },
};
/** With all other weights 0, this one alone decides: it makes everything speech, with a probability of 0.9. */
const OUTPUT_BIAS = 16;

const STATE = 64;
const END_OF_TEXT = 50257;
/** The position from which on the text ends: three words follow what the decoder is told. */
const LAST_POSITION = 6;

/**
 * A synthetic Whisper that says a few words and ends. Its positions point along a pattern of alternating signs, one way
 * at first and then the other, and the row of the end of the text lies along the same pattern.
 */
async function writeWhisper(path: string): Promise<void> {
  await writeSyntheticModel(path, { state: STATE, audioLayers: 4, textLayers: 4, mels: 80, vocab: 51865 });
  const file = readFileSync(path);
  const dataOf = (name: string) => file.indexOf(name) + name.length;
  const positions = dataOf('decoder.positional_embedding');
  for (let i = 0; i < 448 * STATE; i++) {
    const sign = i % 2 === 0 ? 1 : -1;
    file.writeFloatLE(20 * sign * (i < LAST_POSITION * STATE ? -1 : 1), positions + 4 * i);
  }
  // A block of q8_0 has a scale in half precision, and 32 integers. This scale is 1/64.
  const row = dataOf('decoder.token_embedding.weight') + END_OF_TEXT * (STATE / 32) * 34;
  for (let i = 0; i < STATE; i++) {
    const block = row + Math.floor(i / 32) * 34;
    file.writeUInt16LE(0x2400, block);
    file.writeInt8(20 + (i % 2 === 0 ? 64 : -64), block + 2 + (i % 32));
  }
  writeFileSync(path, file);
}

/** Writes the weights to `weights` in the folder, and what is on disk from the start to `models` as well. */
export async function writeWeights(dir: string): Promise<void> {
  for (const folder of ['weights', 'models', 'spool']) mkdirSync(join(dir, folder), { recursive: true });
  const storages = Object.entries(SILERO).map(([storage, count]) => {
    const values = new Float32Array(count).fill(Number(storage) === OUTPUT_BIAS ? 2.2 : 0);
    return [`silero/data/${storage}`, new Uint8Array(values.buffer)] as const;
  });
  writeFileSync(join(dir, 'silero.jit'), storedZip(Object.fromEntries(storages)));
  await writeSilero(join(dir, 'silero.jit'), join(dir, 'weights/voice-activity.bin'));
  await writeWhisper(join(dir, 'weights/multilingual-base.bin'));
  const generated = (path: string) => new URL(`../../native/data/${path}`, import.meta.url).pathname;
  copyFileSync(generated('parakeet-script.bin'), join(dir, 'weights/european.bin'));
  copyFileSync(generated('sensevoice/random/model.gguf'), join(dir, 'weights/cjk.bin'));
  for (const id of Object.keys(FAMILIES))
    copyFileSync(join(dir, `weights/${id}.bin`), join(dir, `models/${id}.bin`));
  writeFileSync(join(dir, `weights/${FETCHED}.bin`), randomBytes(200_000));
}
