/** Converts a CTranslate2 Whisper to whisper.cpp's format, block by block in bounded memory. */
import { basename } from 'node:path';
import type { FileWork } from '../model-folder.ts';
import type { Checkpoint } from './ctranslate2.ts';
import { notImportable } from './failure.ts';
import type { FasterWhisper } from './faster-whisper.ts';
import { createGgmlWriter, GGML_MAGIC, type GgmlWriter } from './ggml-writer.ts';
import type { WrittenFile } from './hashed-file.ts';
import { FFT_BINS, melFilters } from './mel-filters.ts';
import { countOf } from './tensor-values.ts';
import { planTensors, type TensorPlan, type WhisperShape } from './whisper-tensors.ts';

export interface Conversion extends Pick<FileWork, 'signal' | 'report'> {
  /** Called before anything is written, with the approximate size of the result. A rejection ends the conversion. */
  onBegin?(totalBytes: number): Promise<void>;
}

/** The values in memory at a time. The largest checkpoints have 1.5 billion, so a whole tensor is never in memory. */
const BLOCK_VALUES = 1 << 18;
const F16_WEIGHTS = 1;

/** Writes the checkpoint as the f16 file that whisper.cpp's own converter would write. */
export async function writeWhisper(
  { checkpoint, vocabulary, shape }: FasterWhisper,
  target: string,
  work?: Conversion,
): Promise<WrittenFile> {
  if (vocabulary.length >= shape.vocab) {
    throw notImportable(
      `The vocabulary does not belong to the checkpoint: ${vocabulary.length} text tokens, room for ${shape.vocab}.`,
    );
  }
  const plans = planTensors(checkpoint, shape);
  const total = plans.reduce((sum, plan) => sum + countOf(plan.shape) * (plan.type === 'f16' ? 2 : 4), 0);
  let doneBytes = 0;
  await work?.onBegin?.(total);

  await using writer = await createGgmlWriter(target);
  await writeHead(writer, shape, vocabulary);
  for (const plan of plans)
    await writeTensor(checkpoint, writer, plan, (bytes) => {
      work?.signal.throwIfAborted();
      doneBytes += bytes;
      work?.report({ phase: 'converting', what: basename(target), doneBytes, totalBytes: total });
    });
  return await writer.finish();
}

async function writeHead(
  writer: GgmlWriter,
  shape: WhisperShape,
  vocabulary: readonly Buffer[],
): Promise<void> {
  await writer.ints(
    GGML_MAGIC,
    shape.vocab,
    shape.audioContext,
    shape.state,
    shape.audioHeads,
    shape.audioLayers,
    shape.textContext,
    shape.state,
    shape.textHeads,
    shape.textLayers,
    shape.mels,
    F16_WEIGHTS,
  );
  await writer.ints(shape.mels, FFT_BINS);
  await writer.values('f32', melFilters(shape.mels));
  await writer.ints(vocabulary.length);
  const lengths = Buffer.alloc(4);
  await writer.write(
    Buffer.concat(
      vocabulary.flatMap((token) => {
        lengths.writeInt32LE(token.length);
        return [Buffer.from(lengths), token];
      }),
    ),
  );
}

async function writeTensor(
  checkpoint: Checkpoint,
  writer: GgmlWriter,
  plan: TensorPlan,
  wrote: (bytes: number) => void,
): Promise<void> {
  const count = countOf(plan.shape);
  const [rows = 1] = plan.shape;
  const rowValues = count / rows;
  const rowsAtOnce = Math.max(1, Math.floor(BLOCK_VALUES / rowValues));
  const scales = plan.scale ? await checkpoint.floats(plan.scale, 0, plan.scale.count) : null;

  await writer.tensor(plan.name, plan.type, plan.shape);
  for (let row = 0; row < rows; row += rowsAtOnce) {
    const values = Math.min(rowsAtOnce, rows - row) * rowValues;
    const from = (plan.firstRow + row) * rowValues;
    if (plan.type === 'f16' && plan.source.dtype === 'float16') {
      await writer.write(await checkpoint.raw(plan.source, from, values));
    } else {
      const floats = await checkpoint.floats(plan.source, from, values);
      if (scales) unscale(floats, scales, plan.firstRow + row, rowValues);
      await writer.values(plan.type, floats);
    }
    wrote(values * (plan.type === 'f16' ? 2 : 4));
  }
}

function unscale(floats: Float32Array, scales: Float32Array, firstRow: number, rowValues: number): void {
  for (let i = 0; i < floats.length; i++) {
    const row = scales.length === 1 ? 0 : firstRow + Math.floor(i / rowValues);
    floats[i] = (floats[i] ?? 0) / (scales[row] ?? 1);
  }
}
