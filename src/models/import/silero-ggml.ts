/**
 * Writes Silero's 16 kHz voice activity model in whisper.cpp's format, from the unpacked TorchScript archive of the
 * `silero-vad` package. The .safetensors file of the package cannot be used: it holds an older training of the network.
 */
import { join } from 'node:path';
import { BoundedFile } from './bounded-file.ts';
import { notImportable } from './failure.ts';
import { createGgmlWriter, GGML_MAGIC, type GgmlWriter, type TensorType } from './ggml-writer.ts';
import type { WrittenFile } from './hashed-file.ts';
import { countOf, floatsIn } from './tensor-values.ts';

const VERSION = [6, 2, 0] as const;
const WINDOW_SAMPLES = 512;
const CONTEXT_SAMPLES = 64;
/** The input channels, output channels and kernel width of the four encoder convolutions. */
const ENCODER = [
  [129, 128, 3],
  [128, 64, 3],
  [64, 64, 3],
  [64, 128, 3],
] as const;
const LSTM = 128;

/** `storage` is the name of a file below data/ in the archive, which holds only raw float32 values. */
type Entry = [storage: number, name: string, type: TensorType, shape: number[]];

const TENSORS: Entry[] = [
  ...ENCODER.flatMap(([input, output, kernel], i): Entry[] => [
    [3 + 2 * i, `_model.encoder.${i}.reparam_conv.weight`, 'f16', [output, input, kernel]],
    [4 + 2 * i, `_model.encoder.${i}.reparam_conv.bias`, 'f32', [output]],
  ]),
  [11, '_model.decoder.rnn.weight_ih', 'f32', [4 * LSTM, LSTM]],
  [12, '_model.decoder.rnn.weight_hh', 'f32', [4 * LSTM, LSTM]],
  [13, '_model.decoder.rnn.bias_ih', 'f32', [4 * LSTM]],
  [14, '_model.decoder.rnn.bias_hh', 'f32', [4 * LSTM]],
  // whisper.cpp's converter squeezes these two, to 128 values and to a scalar without dimensions.
  [15, '_model.decoder.decoder.2.weight', 'f16', [LSTM]],
  [16, '_model.decoder.decoder.2.bias', 'f32', []],
  [2, '_model.stft.forward_basis_buffer', 'f16', [258, 1, 256]],
];

/** Writes the model to `target`. @param archive the folder with the unpacked TorchScript file */
export async function writeSilero(archive: string, target: string): Promise<WrittenFile> {
  await using writer = await createGgmlWriter(target);
  await writeHead(writer);
  for (const [storage, name, type, shape] of TENSORS) {
    await writer.tensor(name, type, shape);
    await writer.values(type, await readFloats(join(archive, 'data', String(storage)), countOf(shape)));
  }
  return await writer.finish();
}

async function writeHead(writer: GgmlWriter): Promise<void> {
  const kind = Buffer.from('silero-16k');
  await writer.ints(GGML_MAGIC, kind.length);
  await writer.write(kind);
  await writer.ints(...VERSION, WINDOW_SAMPLES, CONTEXT_SAMPLES, ENCODER.length, ...ENCODER.flat());
  await writer.ints(LSTM, LSTM, LSTM, 1);
}

async function readFloats(path: string, count: number): Promise<Float32Array> {
  await using file = await BoundedFile.open(path);
  if (file.size !== count * 4)
    throw notImportable(
      `${path} is not a part of the voice activity model: ${file.size} bytes, expected ${count * 4}.`,
    );
  return floatsIn(await file.read(0, file.size));
}
