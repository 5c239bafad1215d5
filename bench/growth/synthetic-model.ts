/**
 * Writes Whisper files (ggml, q8_0 or f16) of the published shapes with random weights, to measure speed and memory but no
 * words.
 *
 *   node --import tsx bench/growth/synthetic-model.ts FILE ROUNDS     measures one, and answers in JSON
 *
 * Every size has to do the same work, so the rows of the token embedding are not all random: any text token is
 * likelier than the end of the text, and that end likelier than a timestamp. Decoding then gives `maxTokens` text
 * tokens and ends, and never begins a second window.
 */
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadNative } from '../../src/engine/addon.ts';
import { createGgmlWriter, GGML_MAGIC, type GgmlWriter } from '../../src/models/import/ggml-writer.ts';
import { fromHalf, toHalf } from '../../src/models/import/half.ts';
import { FFT_BINS, melFilters } from '../../src/models/import/mel-filters.ts';
import { countOf } from '../../src/models/import/tensor-values.ts';
import { MAX_TOKENS, timeModel } from '../common/engine.ts';
import { megabytes } from '../common/processes.ts';
import { seededRandom } from '../common/random.ts';

export interface Shape {
  state: number;
  audioLayers: number;
  textLayers: number;
  mels: number;
  vocab: number;
}

export const SHAPES: Readonly<Record<string, Shape>> = {
  tiny: { state: 384, audioLayers: 4, textLayers: 4, mels: 80, vocab: 51865 },
  base: { state: 512, audioLayers: 6, textLayers: 6, mels: 80, vocab: 51865 },
  small: { state: 768, audioLayers: 12, textLayers: 12, mels: 80, vocab: 51865 },
  medium: { state: 1024, audioLayers: 24, textLayers: 24, mels: 80, vocab: 51865 },
  'large-v3-turbo': { state: 1280, audioLayers: 32, textLayers: 4, mels: 128, vocab: 51866 },
};

/** The figures of one model in a process of its own. */
export interface ModelRun {
  loadMs: number;
  transcribeMs: number;
  /** Megabytes that loading and transcribing added to the process's peak. */
  peakMegabytes: number;
}

type Weights = 'f16' | 'q8_0';
type Kind = 'f32' | Weights;

interface Tensor {
  name: string;
  kind: Kind;
  /** The shape as PyTorch has it, outermost dimension first. */
  shape: number[];
  /** Standard deviation of the values; when absent, all of them are `constant`. */
  deviation?: number;
  constant?: number;
}

const TYPE_ID: Record<Kind, number> = { f32: 0, f16: 1, q8_0: 8 };
/** The type of most weights. That of q8_0 is behind ggml's version of its quantization. */
const FILE_TYPE = { f16: 1, q8_0: 2 * 1000 + 7 };
const AUDIO_CONTEXT = 1500;
const TEXT_CONTEXT = 448;
const HEAD = 64;
const TEXT_TOKENS = 50257;
const BLOCK = { values: 32, bytes: 34 };
/** The number of blocks that are written again and again is prime, so that no two rows of a tensor are alike. */
const RANDOM_BLOCKS = 32749;
/** Standard deviation of the integers in a block. */
const INT_DEVIATION = 73.3;
const EMBEDDING = 'decoder.token_embedding.weight';

/** Writes the same values as q8_0 or f16, and returns the number of parameters. */
export async function writeSyntheticModel(
  path: string,
  shape: Shape,
  weights: Weights = 'q8_0',
): Promise<number> {
  await using writer = await createGgmlWriter(path);
  await writeHead(writer, shape, weights);
  const random = randomBlocks();
  let parameters = 0;
  for (const tensor of tensorsOf(shape)) {
    parameters += countOf(tensor.shape);
    await writeTensor(writer, tensor, random, weights);
  }
  await writer.finish();
  return parameters;
}

async function writeHead(writer: GgmlWriter, shape: Shape, weights: Weights): Promise<void> {
  const { state, audioLayers, textLayers, mels, vocab } = shape;
  const heads = state / HEAD;
  await writer.ints(GGML_MAGIC, vocab, AUDIO_CONTEXT, state, heads, audioLayers);
  await writer.ints(TEXT_CONTEXT, state, heads, textLayers, mels, FILE_TYPE[weights], mels, FFT_BINS);
  await writer.values('f32', melFilters(mels));
  await writer.ints(TEXT_TOKENS);
  const words = Array.from({ length: TEXT_TOKENS }, (_, i) => {
    const word = i === 220 ? ' ' : ` w${i}`; // a lone space is looked up without a check
    const entry = Buffer.alloc(4 + word.length);
    entry.writeUInt32LE(word.length);
    entry.write(word, 4);
    return entry;
  });
  await writer.write(Buffer.concat(words));
}

function tensorsOf({ state, audioLayers, textLayers, mels, vocab }: Shape): Tensor[] {
  const zeros = (name: string, ...shape: number[]): Tensor => ({ name, kind: 'f32', shape, constant: 0 });
  const norm = (name: string, bias = 0): Tensor[] => [
    { name: `${name}.weight`, kind: 'f32', shape: [state], constant: 1 },
    { name: `${name}.bias`, kind: 'f32', shape: [state], constant: bias },
  ];
  const linear = (name: string, out: number, input: number): Tensor[] => [
    { name: `${name}.weight`, kind: 'q8_0', shape: [out, input], deviation: 1 / Math.sqrt(input) },
    ...(name.endsWith('.key') ? [] : [zeros(`${name}.bias`, out)]),
  ];
  const kernel = (name: string, input: number): Tensor[] => [
    { name: `${name}.weight`, kind: 'f16', shape: [state, input, 3], deviation: 1 / Math.sqrt(3 * input) },
    zeros(`${name}.bias`, state, 1),
  ];
  const attention = (name: string) =>
    ['query', 'key', 'value', 'out'].flatMap((part) => linear(`${name}.${part}`, state, state));
  const block = (name: string) => [
    ...norm(`${name}.attn_ln`),
    ...attention(`${name}.attn`),
    ...norm(`${name}.mlp_ln`),
    ...linear(`${name}.mlp.0`, 4 * state, state),
    ...linear(`${name}.mlp.2`, state, 4 * state),
  ];
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  return [
    zeros('encoder.positional_embedding', AUDIO_CONTEXT, state),
    ...kernel('encoder.conv1', mels),
    ...kernel('encoder.conv2', state),
    ...numbers(audioLayers).flatMap((i) => block(`encoder.blocks.${i}`)),
    ...norm('encoder.ln_post'),
    zeros('decoder.positional_embedding', TEXT_CONTEXT, state),
    // The standard deviation of a text token's logit is 10, so the highest of all of them is about 40.
    { name: EMBEDDING, kind: 'q8_0', shape: [vocab, state], deviation: 10 / Math.sqrt(state) },
    ...numbers(textLayers).flatMap((i) => [
      ...block(`decoder.blocks.${i}`),
      ...norm(`decoder.blocks.${i}.cross_attn_ln`),
      ...attention(`decoder.blocks.${i}.cross_attn`),
    ]),
    ...norm('decoder.ln', 1),
  ];
}

async function writeTensor(
  writer: GgmlWriter,
  tensor: Tensor,
  random: Buffer,
  weights: Weights,
): Promise<void> {
  const { name, kind, shape, deviation = 0, constant = 0 } = tensor;
  const count = countOf(shape);
  const type = TYPE_ID[kind === 'q8_0' ? weights : kind];
  const write = (blocks: Buffer) => writer.write(weights === 'f16' ? halvesOf(blocks) : blocks);
  await writer.ints(shape.length, name.length, type, ...shape.toReversed());
  await writer.write(Buffer.from(name));
  if (name === EMBEDDING) {
    const [vocab = 0, state = 0] = shape;
    await writeBlocks(write, random, TEXT_TOKENS * state, deviation);
    // Over the last norm's bias of 1 this row gives a logit of 20, and the rows behind it give 0.
    await write(equalBlocks(state, 20 / state));
    await write(equalBlocks((vocab - TEXT_TOKENS - 1) * state, 0));
  } else if (kind === 'q8_0') {
    await writeBlocks(write, random, count, deviation);
  } else {
    const scale = deviation / INT_DEVIATION;
    const values = Float32Array.from({ length: count }, (_, i) =>
      deviation === 0 ? constant : scale * random.readInt8(2 + (i % RANDOM_BLOCKS) * BLOCK.bytes),
    );
    await writer.values(kind, values);
  }
}

type Write = (blocks: Buffer) => Promise<void>;

async function writeBlocks(write: Write, random: Buffer, count: number, deviation: number) {
  const scale = toHalf(deviation / INT_DEVIATION);
  for (let at = 0; at < random.length; at += BLOCK.bytes) random.writeUInt16LE(scale, at);
  for (let left = (count / BLOCK.values) * BLOCK.bytes; left > 0; left -= random.length)
    await write(random.subarray(0, left));
}

function equalBlocks(count: number, value: number): Buffer {
  const block = Buffer.alloc(BLOCK.bytes, 127);
  block.writeUInt16LE(toHalf(value / 127), 0);
  return Buffer.alloc((count / BLOCK.values) * BLOCK.bytes, block);
}

/** The values of blocks of q8_0 in half precision. */
function halvesOf(blocks: Buffer): Buffer {
  const count = (blocks.length / BLOCK.bytes) * BLOCK.values;
  const halves = Buffer.alloc(2 * count);
  for (let i = 0; i < count; i++) {
    const block = Math.floor(i / BLOCK.values) * BLOCK.bytes;
    const value = fromHalf(blocks.readUInt16LE(block)) * blocks.readInt8(block + 2 + (i % BLOCK.values));
    halves.writeUInt16LE(toHalf(value), 2 * i);
  }
  return halves;
}

/** Makes integers from -127 to 127, the same at every call; the scales are still to be written. */
function randomBlocks(): Buffer {
  const blocks = Buffer.alloc(RANDOM_BLOCKS * BLOCK.bytes);
  const random = seededRandom(1);
  for (let i = 0; i < blocks.length; i++) blocks.writeInt8(Math.floor(random() * 255) - 127, i);
  return blocks;
}

async function measure(path: string, rounds: number): Promise<ModelRun> {
  const engine = loadNative();
  writeFileSync('/proc/self/clear_refs', '5'); // the kernel counts the peak from here: proc_pid_clear_refs(5)
  const before = megabytes('self', 'VmHWM');
  const { loadMs, transcribeMs, tokens } = await timeModel(
    engine,
    { family: 'whisper', path, device: 'cpu' },
    rounds,
  );
  if (tokens.length !== MAX_TOKENS) throw new Error(`${path} gave ${tokens.length} tokens`);
  return { loadMs, transcribeMs, peakMegabytes: megabytes('self', 'VmHWM') - before };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [path, rounds] = process.argv.slice(2);
  if (path === undefined) throw new Error('Expected the path of a model');
  process.stdout.write(JSON.stringify(await measure(path, Number(rounds ?? 3))));
}
