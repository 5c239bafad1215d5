/**
 * The tensors of CAM++ (https://arxiv.org/abs/2303.00332), from the checkpoint of 3D-Speaker to the names of
 * native/speakers/. A batch normalization that follows a linear layer becomes part of it. One that comes before a layer
 * stays, as a factor and a summand for each channel.
 */
import type { GgufTensor } from './gguf-writer.ts';
import type { TorchCheckpoint } from './torch-checkpoint.ts';

const EPSILON = 1e-5;
const HEAD = 32;
const FEATURES = 320;
const WIDTH = 128;
const GROWTH = 32;
const GATE = 64;
const BLOCKS = [12, 24, 16] as const;
const EMBEDDING = 192;

interface Affine {
  factor: Float64Array;
  summand: Float64Array;
}

/** @throws GatewayError `not_importable` unless the checkpoint holds exactly this network */
export function embeddingTensors(checkpoint: TorchCheckpoint): GgufTensor[] {
  const network = new Network(checkpoint);
  addHead(network);
  const channels = addBlocks(network);
  const dense = network.normalization('xvector.dense.nonlinear.batchnorm', EMBEDDING, false);
  network.normalized('dense', 'xvector.dense.linear.weight', [EMBEDDING, 2 * channels, 1], dense);
  return network.tensors;
}

/** The tensors so far, and how a layer of the checkpoint is added to them. */
class Network {
  readonly tensors: GgufTensor[] = [];
  readonly #checkpoint: TorchCheckpoint;

  constructor(checkpoint: TorchCheckpoint) {
    this.#checkpoint = checkpoint;
  }

  #add(name: string, shape: readonly number[], values: Float32Array): void {
    this.tensors.push({ name: `embedding.${name}`, shape: [...shape], values });
  }

  /** A tensor as it is in the checkpoint. */
  plain(name: string, source: string, shape: readonly number[]): void {
    this.#add(name, shape, this.#checkpoint.floats(source, shape));
  }

  normalization(source: string, channels: number, trained = true): Affine {
    const read = (part: string) => this.#checkpoint.floats(`${source}.${part}`, [channels]);
    const [mean, variance] = [read('running_mean'), read('running_var')];
    const weight = trained ? read('weight') : undefined;
    const bias = trained ? read('bias') : undefined;
    const factor = Float64Array.from(variance, (value, i) => (weight?.[i] ?? 1) / Math.sqrt(value + EPSILON));
    const summand = Float64Array.from(mean, (value, i) => (bias?.[i] ?? 0) - value * (factor[i] ?? 0));
    return { factor, summand };
  }

  /** A layer without a bias of its own, and the normalization of its outputs. */
  normalized(name: string, source: string, shape: number[], { factor, summand }: Affine): void {
    const weight = this.#checkpoint.floats(source, shape);
    const depth = weight.length / factor.length;
    this.#add(
      `${name}.weight`,
      shape,
      weight.map((value, i) => value * (factor[Math.floor(i / depth)] ?? 0)),
    );
    this.#add(`${name}.bias`, [factor.length], Float32Array.from(summand));
  }

  /** A normalization that comes before a layer. */
  before(name: string, source: string, channels: number): void {
    const { factor, summand } = this.normalization(`xvector.${source}`, channels);
    this.#add(`${name}.norm.factor`, [channels], Float32Array.from(factor));
    this.#add(`${name}.norm.summand`, [channels], Float32Array.from(summand));
  }
}

/** The convolutions over time and frequency (a ResNet of two layers). */
function addHead(network: Network): void {
  function add(name: string, conv: string, norm: string, shape: number[]) {
    const affine = network.normalization(`head.${norm}`, HEAD);
    network.normalized(`head.${name}`, `head.${conv}.weight`, shape, affine);
  }
  add('first', 'conv1', 'bn1', [HEAD, 1, 3, 3]);
  for (const layer of [1, 2]) {
    for (const block of [0, 1]) {
      const [name, source] = [`${layer}.${block}`, `layer${layer}.${block}`];
      for (const part of [1, 2])
        add(`${name}.conv${part}`, `${source}.conv${part}`, `${source}.bn${part}`, [HEAD, HEAD, 3, 3]);
      if (block === 0)
        add(`${name}.shortcut`, `${source}.shortcut.0`, `${source}.shortcut.1`, [HEAD, HEAD, 1, 1]);
    }
  }
  add('last', 'conv2', 'bn2', [HEAD, HEAD, 3, 3]);
}

/** The densely connected blocks (D-TDNN) and the transits between them. Returns the channels of the last one. */
function addBlocks(network: Network): number {
  const tdnn = network.normalization('xvector.tdnn.nonlinear.batchnorm', WIDTH);
  network.normalized('tdnn', 'xvector.tdnn.linear.weight', [WIDTH, FEATURES, 5], tdnn);
  let channels: number = WIDTH;
  for (const [block, layers] of BLOCKS.entries()) {
    for (let layer = 0; layer < layers; layer++) {
      addLayer(network, `block.${block}.${layer}`, `block${block + 1}.tdnnd${layer + 1}`, channels);
      channels += GROWTH;
    }
    const name = `transit.${block}`;
    const [source, shape] = [`transit${block + 1}`, [channels / 2, channels, 1]];
    network.before(name, `${source}.nonlinear.batchnorm`, channels);
    channels /= 2;
    if (block + 1 < BLOCKS.length) {
      network.plain(`${name}.weight`, `xvector.${source}.linear.weight`, shape);
    } else {
      const out = network.normalization('xvector.out_nonlinear.batchnorm', channels);
      network.normalized(name, `xvector.${source}.linear.weight`, shape, out);
    }
  }
  return channels;
}

/** A layer of a block, with its context-aware mask. */
function addLayer(network: Network, name: string, source: string, channels: number): void {
  network.before(name, `${source}.nonlinear1.batchnorm`, channels);
  const inner = network.normalization(`xvector.${source}.nonlinear2.batchnorm`, WIDTH);
  network.normalized(`${name}.bottleneck`, `xvector.${source}.linear1.weight`, [WIDTH, channels, 1], inner);
  for (const [to, from, shape] of [
    ['local.weight', 'linear_local.weight', [GROWTH, WIDTH, 3]],
    ['context.weight', 'linear1.weight', [GATE, WIDTH, 1]],
    ['context.bias', 'linear1.bias', [GATE]],
    ['gate.weight', 'linear2.weight', [GROWTH, GATE, 1]],
    ['gate.bias', 'linear2.bias', [GROWTH]],
  ] as const)
    network.plain(`${name}.${to}`, `xvector.${source}.cam_layer.${from}`, shape);
}
