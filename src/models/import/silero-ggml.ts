/**
 * Writes Silero's 16 kHz voice activity model in whisper.cpp's format, from the TorchScript file of the `silero-vad`
 * package, which is a zip archive. The .safetensors file of the package cannot be used: it holds an older training of the network.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { unzipSync } from 'fflate';
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

/** Writes the model to `target`. @throws GatewayError `not_importable` unless the archive holds exactly this network */
export async function writeSilero(script: string, target: string): Promise<WrittenFile> {
  const entries = unzipSync(await readFile(script), { filter: ({ name }) => /\/data\/\d+$/.test(name) });
  const storages = new Map(Object.entries(entries).map(([name, bytes]) => [basename(name), bytes]));
  await using writer = await createGgmlWriter(target);
  await writeHead(writer);
  for (const [storage, name, type, shape] of TENSORS) {
    await writer.tensor(name, type, shape);
    const bytes = storages.get(String(storage));
    if (bytes?.length !== countOf(shape) * 4)
      throw notImportable(`${script} is not the voice activity model: ${name} has another size.`);
    await writer.values(type, floatsIn(bytes));
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
