/** Maps the variables of a CTranslate2 Whisper to the tensors of whisper.cpp's file, in PyTorch's module order. */
import type { Checkpoint, Variable } from './ctranslate2.ts';
import { notImportable } from './failure.ts';
import type { TensorType } from './ggml-writer.ts';

export interface WhisperShape {
  vocab: number;
  audioContext: number;
  state: number;
  audioHeads: number;
  audioLayers: number;
  textContext: number;
  textHeads: number;
  textLayers: number;
  mels: number;
}

export interface TensorPlan {
  name: string;
  type: TensorType;
  shape: number[];
  source: Variable;
  /** The first row (outermost dimension) in the source, where the attention projections are stacked. */
  firstRow: number;
  /** For integer weights, one divisor or one for each row of the source; null for floats. */
  scale: Variable | null;
}

/** These limits are far above the largest Whisper (1280, 32) and far below sizes that could exhaust memory. */
const MAX_STATE = 8192;
const MAX_LAYERS = 256;

/** The dimensions of the checkpoint. @throws GatewayError `not_importable` when they are not those of a Whisper */
export async function readWhisperShape(checkpoint: Checkpoint): Promise<WhisperShape> {
  if (checkpoint.spec !== 'WhisperSpec') {
    throw notImportable(
      `The checkpoint is not a Whisper: its model type is ${JSON.stringify(checkpoint.spec.slice(0, 80))}.`,
    );
  }
  const [state, mels, width] = dimensions(checkpoint, 'encoder/conv1/weight', 3);
  const [audioContext] = dimensions(checkpoint, 'encoder/position_encodings/encodings', 2);
  const [textContext] = dimensions(checkpoint, 'decoder/position_encodings/encodings', 2);
  const [vocab] = dimensions(checkpoint, 'decoder/embeddings/weight', 2);
  const shape: WhisperShape = {
    vocab,
    audioContext,
    state,
    audioHeads: await heads(checkpoint, 'encoder', state),
    audioLayers: countLayers(checkpoint, 'encoder'),
    textContext,
    textHeads: await heads(checkpoint, 'decoder', state),
    textLayers: countLayers(checkpoint, 'decoder'),
    mels,
  };
  const sane =
    width === 3 &&
    (mels === 80 || mels === 128) &&
    state % 32 === 0 &&
    state <= MAX_STATE &&
    state % shape.audioHeads === 0 &&
    state % shape.textHeads === 0 &&
    shape.audioLayers > 0 &&
    shape.textLayers > 0;
  if (!sane)
    throw notImportable(
      `The checkpoint does not have the dimensions of a Whisper: ${JSON.stringify(shape)}.`,
    );
  return shape;
}

/** The tensors to write, in order. @throws GatewayError `not_importable` when a variable is missing or does not fit */
export function planTensors(checkpoint: Checkpoint, shape: WhisperShape): TensorPlan[] {
  const plans: TensorPlan[] = [];
  const add: AddTensor = (...tensor) => plans.push(tensorPlan(checkpoint, ...tensor));
  const layers = layersOf(add, shape.state);
  addEncoder(add, layers, shape);
  addDecoder(add, layers, shape);
  return plans;
}

type AddTensor = (
  name: string,
  source: string,
  dims: number[],
  type: TensorType,
  firstRow?: number,
  rows?: number,
) => void;

function addEncoder(
  add: AddTensor,
  layers: Layers,
  { audioContext, audioLayers, mels, state }: WhisperShape,
) {
  const positions = [audioContext, state];
  add('encoder.positional_embedding', 'encoder/position_encodings/encodings', positions, 'f32');
  for (const [conv, input] of [
    ['conv1', mels],
    ['conv2', state],
  ] as const) {
    add(`encoder.${conv}.weight`, `encoder/${conv}/weight`, [state, input, 3], 'f16');
    add(`encoder.${conv}.bias`, `encoder/${conv}/bias`, [state, 1], 'f32');
  }
  for (let i = 0; i < audioLayers; i++) {
    layers.selfAttention(`encoder.blocks.${i}`, `encoder/layer_${i}/self_attention`);
    layers.feedForward(`encoder.blocks.${i}`, `encoder/layer_${i}/ffn`);
  }
  layers.norm('encoder.ln_post', 'encoder/layer_norm');
}

function addDecoder(add: AddTensor, layers: Layers, { textContext, textLayers, vocab, state }: WhisperShape) {
  const positions = [textContext, state];
  add('decoder.positional_embedding', 'decoder/position_encodings/encodings', positions, 'f32');
  add('decoder.token_embedding.weight', 'decoder/embeddings/weight', [vocab, state], 'f16');
  for (let i = 0; i < textLayers; i++) {
    layers.selfAttention(`decoder.blocks.${i}`, `decoder/layer_${i}/self_attention`);
    layers.crossAttention(`decoder.blocks.${i}`, `decoder/layer_${i}/attention`);
    layers.feedForward(`decoder.blocks.${i}`, `decoder/layer_${i}/ffn`);
  }
  layers.norm('decoder.ln', 'decoder/layer_norm');
}

type Layers = ReturnType<typeof layersOf>;

/** What the blocks of a transformer are made of. */
function layersOf(add: AddTensor, state: number) {
  function linear(
    name: string,
    source: string,
    out: number,
    input: number,
    part = 0,
    parts = 1,
    bias = true,
  ) {
    add(`${name}.weight`, `${source}/weight`, [out, input], 'f16', part * out, parts * out);
    if (bias) add(`${name}.bias`, `${source}/bias`, [out], 'f32', part * out, parts * out);
  }
  function norm(name: string, source: string) {
    add(`${name}.weight`, `${source}/gamma`, [state], 'f32');
    add(`${name}.bias`, `${source}/beta`, [state], 'f32');
  }
  function selfAttention(block: string, source: string) {
    linear(`${block}.attn.query`, `${source}/linear_0`, state, state, 0, 3);
    linear(`${block}.attn.key`, `${source}/linear_0`, state, state, 1, 3, false);
    linear(`${block}.attn.value`, `${source}/linear_0`, state, state, 2, 3);
    linear(`${block}.attn.out`, `${source}/linear_1`, state, state);
    norm(`${block}.attn_ln`, `${source}/layer_norm`);
  }
  function crossAttention(block: string, source: string) {
    linear(`${block}.cross_attn.query`, `${source}/linear_0`, state, state);
    linear(`${block}.cross_attn.key`, `${source}/linear_1`, state, state, 0, 2, false);
    linear(`${block}.cross_attn.value`, `${source}/linear_1`, state, state, 1, 2);
    linear(`${block}.cross_attn.out`, `${source}/linear_2`, state, state);
    norm(`${block}.cross_attn_ln`, `${source}/layer_norm`);
  }
  function feedForward(block: string, source: string) {
    linear(`${block}.mlp.0`, `${source}/linear_0`, 4 * state, state);
    linear(`${block}.mlp.2`, `${source}/linear_1`, state, 4 * state);
    norm(`${block}.mlp_ln`, `${source}/layer_norm`);
  }
  return { norm, selfAttention, crossAttention, feedForward };
}

/** @param rows of the source, where that has more than the tensor */
function tensorPlan(
  checkpoint: Checkpoint,
  name: string,
  sourceName: string,
  shape: number[],
  type: TensorType,
  firstRow = 0,
  rows?: number,
): TensorPlan {
  const [outer = 1, ...inner] = shape;
  const source = checkpoint.get(sourceName);
  const expected = [rows ?? outer, ...inner.filter((dim) => dim !== 1 || shape.length > 2)];
  if (source?.shape.join() !== expected.join()) {
    throw notImportable(
      `The checkpoint does not fit: ${sourceName} should be [${expected}] and is ${source ? `[${source.shape}]` : 'missing'}.`,
    );
  }
  return { name, type, shape, source, firstRow, scale: findScale(checkpoint, sourceName, source) };
}

function dimensions(checkpoint: Checkpoint, name: string, rank: number): [number, number, number] {
  const variable = checkpoint.get(name);
  if (variable?.shape.length !== rank || variable.count === 0) {
    throw notImportable(`The checkpoint is not a complete Whisper: ${name} is missing or has another rank.`);
  }
  return [variable.shape[0] ?? 0, variable.shape[1] ?? 0, variable.shape[2] ?? 0];
}

function countLayers(checkpoint: Checkpoint, side: 'encoder' | 'decoder'): number {
  let layers = 0;
  while (layers < MAX_LAYERS && checkpoint.get(`${side}/layer_${layers}/self_attention/layer_norm/gamma`))
    layers++;
  return layers;
}

/** The number of heads. Files since CTranslate2 2 hold it; before, every Whisper had heads of 64. */
async function heads(checkpoint: Checkpoint, side: 'encoder' | 'decoder', state: number): Promise<number> {
  const variable = checkpoint.get(`${side}/num_heads`);
  if (variable?.count !== 1) return Math.max(1, Math.floor(state / 64));
  const [value = 0] = await checkpoint.floats(variable, 0, 1);
  return Number.isInteger(value) && value > 0 ? value : 1;
}

function findScale(checkpoint: Checkpoint, name: string, source: Variable): Variable | null {
  if (source.dtype.startsWith('float') || source.dtype === 'bfloat16') return null;
  const scale = checkpoint.get(`${name}_scale`);
  const rows = source.shape[0] ?? 1;
  if (!scale || (scale.count !== 1 && scale.count !== rows)) {
    throw notImportable(`The checkpoint does not fit: ${name} holds integers without one scale per row.`);
  }
  return scale;
}
