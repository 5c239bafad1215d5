/**
 * Writes a language model of 130 kB: llama's architecture, one block of 32 dimensions, random weights from a fixed
 * seed. A real engine loads and runs it like any other; it knows some fifty words and no grammar.
 */
import { renameSync, writeFileSync } from 'node:fs';

const DIM = 32;
const FEED_FORWARD = 64;
const HEADS = 2;
const ALIGNMENT = 32;
export const CONTEXT_LENGTH = 2048;

/** Some words are not ASCII, because a stream must not break a character in two. */
const WORDS =
  'a an the voice word sound song wave tone echo silence answer question letter river window garden morning café ' +
  'naïve größe 声音 文字 слово 🎧 is was hears speaks writes sings waits turns and or but then where while soft loud ' +
  'clear warm quiet bright old new small slow near far again always never';

/** GGUF has these types of metadata values and of vocabulary entries. */
const [U32, F32, STRING, ARRAY, I32] = [4, 6, 8, 9, 5];
const [NORMAL, UNKNOWN, CONTROL, BYTE] = [1, 2, 3, 6];

/** @type {{ text: string, type: number }[]} */
const VOCABULARY = [
  { text: '<unk>', type: UNKNOWN },
  { text: '<s>', type: CONTROL },
  { text: '</s>', type: CONTROL },
  ...Array.from({ length: 256 }, (_, byte) => ({
    text: `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`,
    type: BYTE,
  })),
  ...WORDS.split(' ').map((word) => ({ text: `▁${word}`, type: NORMAL })),
];

const METADATA = [
  ['general.architecture', STRING, 'llama'],
  ['general.name', STRING, 'tiny'],
  ['llama.context_length', U32, CONTEXT_LENGTH],
  ['llama.embedding_length', U32, DIM],
  ['llama.block_count', U32, 1],
  ['llama.feed_forward_length', U32, FEED_FORWARD],
  ['llama.attention.head_count', U32, HEADS],
  ['llama.attention.head_count_kv', U32, HEADS],
  ['llama.attention.layer_norm_rms_epsilon', F32, 1e-5],
  ['llama.rope.dimension_count', U32, DIM / HEADS],
  ['llama.vocab_size', U32, VOCABULARY.length],
  ['tokenizer.ggml.model', STRING, 'llama'],
  ['tokenizer.ggml.tokens', ARRAY, [STRING, VOCABULARY.map(({ text }) => text)]],
  ['tokenizer.ggml.scores', ARRAY, [F32, VOCABULARY.map(() => 0)]],
  ['tokenizer.ggml.token_type', ARRAY, [I32, VOCABULARY.map(({ type }) => type)]],
  ['tokenizer.ggml.unknown_token_id', U32, 0],
  ['tokenizer.ggml.bos_token_id', U32, 1],
  ['tokenizer.ggml.eos_token_id', U32, 2],
];

/** Replaces the file as a whole, so that a daemon that reads it now is not disturbed. @param {string} path */
export function writeTinyModel(path) {
  const part = `${path}.${process.pid}`;
  writeFileSync(part, tinyModel());
  renameSync(part, path);
}

function tinyModel() {
  const tensors = weights();
  let offset = 0;
  const infos = tensors.map(({ name, shape, data }) => {
    const info = [string(name), u32(shape.length), ...shape.map(u64), u32(0), u64(offset)];
    offset += aligned(data.byteLength);
    return Buffer.concat(info);
  });
  const metadata = METADATA.map(([key, type, value]) =>
    Buffer.concat([string(key), u32(type), encode(type, value)]),
  );
  const head = [
    Buffer.from('GGUF'),
    u32(3),
    u64(tensors.length),
    u64(METADATA.length),
    ...metadata,
    ...infos,
  ];
  const data = tensors.map((tensor) => Buffer.from(tensor.data.buffer));
  return Buffer.concat([Buffer.concat(head), ...data].map(padded));
}

/**
 * The first dimension of every embedding is large, and nothing in the block writes to it, so a token is likely where
 * a row of the output is large there too. Words are therefore likely, and bytes and the end of the answer never come.
 */
function weights() {
  const random = gaussian(20_251);
  const tensor = (name, ...shape) => ({
    name,
    shape,
    data: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, () => random() * 0.2),
  });
  const ones = (name) => ({ name, shape: [DIM], data: new Float32Array(DIM).fill(1) });
  const embedding = tensor('token_embd.weight', DIM, VOCABULARY.length);
  const output = tensor('output.weight', DIM, VOCABULARY.length);
  for (const [id, { type }] of VOCABULARY.entries()) {
    embedding.data[id * DIM] = 4;
    output.data[id * DIM] = type === NORMAL ? 4 : -4;
  }
  const attention = tensor('blk.0.attn_output.weight', DIM, DIM);
  const down = tensor('blk.0.ffn_down.weight', FEED_FORWARD, DIM);
  attention.data.fill(0, 0, DIM);
  down.data.fill(0, 0, FEED_FORWARD);
  return [
    embedding,
    output,
    ones('output_norm.weight'),
    ones('blk.0.attn_norm.weight'),
    ones('blk.0.ffn_norm.weight'),
    ...['q', 'k', 'v'].map((part) => tensor(`blk.0.attn_${part}.weight`, DIM, DIM)),
    attention,
    tensor('blk.0.ffn_gate.weight', DIM, FEED_FORWARD),
    tensor('blk.0.ffn_up.weight', DIM, FEED_FORWARD),
    down,
  ];
}

/** Gives normally distributed numbers, always the same ones (mulberry32, Box and Muller). */
function gaussian(seed) {
  let state = seed;
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

function encode(type, value) {
  if (type === STRING) return string(value);
  if (type === U32 || type === I32) return u32(value);
  if (type === F32) return Buffer.from(Float32Array.of(value).buffer);
  const [itemType, items] = value;
  return Buffer.concat([u32(itemType), u64(items.length), ...items.map((item) => encode(itemType, item))]);
}

const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const string = (text) => Buffer.concat([u64(Buffer.byteLength(text)), Buffer.from(text)]);
const aligned = (size) => Math.ceil(size / ALIGNMENT) * ALIGNMENT;
const padded = (bytes) => Buffer.concat([bytes], aligned(bytes.length));
