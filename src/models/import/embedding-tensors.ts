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
export async function embeddingTensors(checkpoint: TorchCheckpoint): Promise<GgufTensor[]> {
  const tensors: GgufTensor[] = [];
  const add = (name: string, shape: number[], values: Float32Array) =>
    tensors.push({ name: `embedding.${name}`, shape, values });

  async function normalization(source: string, channels: number, trained = true): Promise<Affine> {
    const read = (part: string) => checkpoint.floats(`${source}.${part}`, [channels]);
    const [mean, variance] = [await read('running_mean'), await read('running_var')];
    const weight = trained ? await read('weight') : undefined;
    const bias = trained ? await read('bias') : undefined;
    const factor = Float64Array.from(variance, (value, i) => (weight?.[i] ?? 1) / Math.sqrt(value + EPSILON));
    const summand = Float64Array.from(mean, (value, i) => (bias?.[i] ?? 0) - value * (factor[i] ?? 0));
    return { factor, summand };
  }

  /** A layer without a bias of its own, and the normalization of its outputs. */
  async function normalized(name: string, source: string, shape: number[], { factor, summand }: Affine) {
    const weight = await checkpoint.floats(source, shape);
    const depth = weight.length / factor.length;
    add(
      `${name}.weight`,
      shape,
      weight.map((value, i) => value * (factor[Math.floor(i / depth)] ?? 0)),
    );
    add(`${name}.bias`, [factor.length], Float32Array.from(summand));
  }

  async function head(name: string, conv: string, norm: string, shape: number[]) {
    await normalized(`head.${name}`, `head.${conv}.weight`, shape, await normalization(`head.${norm}`, HEAD));
  }

  async function before(name: string, source: string, channels: number) {
    const { factor, summand } = await normalization(`xvector.${source}`, channels);
    add(`${name}.norm.factor`, [channels], Float32Array.from(factor));
    add(`${name}.norm.summand`, [channels], Float32Array.from(summand));
  }

  await head('first', 'conv1', 'bn1', [HEAD, 1, 3, 3]);
  for (const layer of [1, 2]) {
    for (const block of [0, 1]) {
      const [name, source] = [`${layer}.${block}`, `layer${layer}.${block}`];
      for (const part of [1, 2])
        await head(`${name}.conv${part}`, `${source}.conv${part}`, `${source}.bn${part}`, [HEAD, HEAD, 3, 3]);
      if (block === 0)
        await head(`${name}.shortcut`, `${source}.shortcut.0`, `${source}.shortcut.1`, [HEAD, HEAD, 1, 1]);
    }
  }
  await head('last', 'conv2', 'bn2', [HEAD, HEAD, 3, 3]);

  const tdnn = await normalization('xvector.tdnn.nonlinear.batchnorm', WIDTH);
  await normalized('tdnn', 'xvector.tdnn.linear.weight', [WIDTH, FEATURES, 5], tdnn);
  let channels: number = WIDTH;
  for (const [block, layers] of BLOCKS.entries()) {
    for (let layer = 0; layer < layers; layer++) {
      const [name, source] = [`block.${block}.${layer}`, `block${block + 1}.tdnnd${layer + 1}`];
      await before(name, `${source}.nonlinear1.batchnorm`, channels);
      const inner = await normalization(`xvector.${source}.nonlinear2.batchnorm`, WIDTH);
      await normalized(`${name}.bottleneck`, `xvector.${source}.linear1.weight`, [WIDTH, channels, 1], inner);
      for (const [to, from, shape] of [
        ['local.weight', 'linear_local.weight', [GROWTH, WIDTH, 3]],
        ['context.weight', 'linear1.weight', [GATE, WIDTH, 1]],
        ['context.bias', 'linear1.bias', [GATE]],
        ['gate.weight', 'linear2.weight', [GROWTH, GATE, 1]],
        ['gate.bias', 'linear2.bias', [GROWTH]],
      ] as const) {
        add(
          `${name}.${to}`,
          [...shape],
          await checkpoint.floats(`xvector.${source}.cam_layer.${from}`, shape),
        );
      }
      channels += GROWTH;
    }
    const name = `transit.${block}`;
    const [source, shape] = [`transit${block + 1}`, [channels / 2, channels, 1]];
    await before(name, `${source}.nonlinear.batchnorm`, channels);
    channels /= 2;
    if (block + 1 < BLOCKS.length) {
      add(`${name}.weight`, shape, await checkpoint.floats(`xvector.${source}.linear.weight`, shape));
    } else {
      const out = await normalization('xvector.out_nonlinear.batchnorm', channels);
      await normalized(name, `xvector.${source}.linear.weight`, shape, out);
    }
  }
  const dense = await normalization('xvector.dense.nonlinear.batchnorm', EMBEDDING, false);
  await normalized('dense', 'xvector.dense.linear.weight', [EMBEDDING, 2 * channels, 1], dense);
  return tensors;
}
