/** Opens a folder in the layout of faster-whisper: model.bin and a vocabulary. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CATALOGUE } from '../catalogue.ts';
import type { CheckpointShape } from '../weights.ts';
import { type Checkpoint, openCheckpoint } from './ctranslate2.ts';
import { notImportable } from './failure.ts';
import { readVocabulary } from './vocabulary.ts';
import { readWhisperShape, type WhisperShape } from './whisper-tensors.ts';

export interface FasterWhisper extends AsyncDisposable {
  checkpoint: Checkpoint;
  vocabulary: Buffer[];
  shape: WhisperShape;
}

/** @throws GatewayError `not_importable` when the folder does not hold a Whisper model */
export async function openFasterWhisper(dir: string): Promise<FasterWhisper> {
  const path = join(dir, 'model.bin');
  const info = await stat(path).catch(() => null);
  if (!info) {
    throw notImportable(
      `${dir} has no model.bin. Give the folder of a faster-whisper model: config.json, model.bin and a vocabulary.`,
    );
  }
  const checkpoint = await openCheckpoint(path);
  try {
    return {
      checkpoint,
      vocabulary: await readVocabulary(dir),
      shape: await readWhisperShape(checkpoint),
      [Symbol.asyncDispose]: () => checkpoint[Symbol.asyncDispose](),
    };
  } catch (error) {
    await checkpoint[Symbol.asyncDispose]();
    throw error;
  }
}

/**
 * The id in the catalogue for a checkpoint with these dimensions.
 * @param wanted the id that the user gave; needed for large-v1 and large-v2, which have the same dimensions
 * @throws GatewayError `not_importable` when no id fits, or several do
 */
export function identifyWhisper(shape: WhisperShape, wanted?: string): string {
  const found: CheckpointShape = [shape.state, shape.audioLayers, shape.textLayers, shape.mels, shape.vocab];
  const fitting = CATALOGUE.filter(({ checkpoint }) => checkpoint?.join() === found.join()).map(
    ({ id }) => id,
  );
  if (wanted !== undefined) {
    if (fitting.includes(wanted)) return wanted;
    throw notImportable(
      `The checkpoint is not ${wanted}: ${fitting.length > 0 ? `it is ${fitting.join(' or ')}` : describe(shape)}.`,
    );
  }
  const [only, ...others] = fitting;
  if (only === undefined)
    throw notImportable(`No model of the catalogue has these dimensions: ${describe(shape)}.`);
  if (others.length > 0) {
    throw notImportable(`The checkpoint may be ${fitting.join(' or ')}: say which one with --id.`);
  }
  return only;
}

function describe(shape: WhisperShape): string {
  const english = shape.vocab === 51864 ? ', an English-only Whisper' : '';
  return `state ${shape.state}, ${shape.audioLayers}+${shape.textLayers} layers, ${shape.mels} mel bands, ${shape.vocab} tokens${english}`;
}
