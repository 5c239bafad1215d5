/**
 * Imports a CTranslate2 folder in the layout of faster-whisper, as the f16 weights of the model with its dimensions.
 * Installed weights are never replaced, and a refused folder changes nothing.
 */
import { join } from 'node:path';
import { requireSpace } from '../disk.ts';
import type { FileWork, ModelFolder } from '../model-folder.ts';
import { localFile, type Weights } from '../weights.ts';
import { notImportable } from './failure.ts';
import { identifyWhisper, openFasterWhisper } from './faster-whisper.ts';
import { writeWhisper } from './whisper-ggml.ts';

/** The q8_0 file, which is made after the f16 file, takes a little more than half of its space. */
const BOTH_PRECISIONS = 1.6;

export interface ImportTarget {
  folder: ModelFolder;
  log: { info(message: string): void };
  /** @throws GatewayError for an id that is not in the catalogue */
  find(id: string): Weights;
  /** The name of a file that the model already has; undefined if it has none. */
  installedFile(model: Weights): string | undefined;
  /** Runs the work on the model's files when no other process works on them. */
  work<Result>(id: string, work: (context: FileWork) => Promise<Result>): Promise<Result>;
}

/**
 * @param source the folder: config.json, model.bin and a vocabulary
 * @param id the id that the user gave; needed only where several models have the same dimensions
 * @param thenQuantize true to make the q8_0 file as well
 * @throws GatewayError `not_importable`
 */
export async function importFolder(
  source: string,
  id: string | undefined,
  thenQuantize: boolean,
  target: ImportTarget,
): Promise<{ id: string; path: string }> {
  await using opened = await openFasterWhisper(source);
  const model = target.find(identifyWhisper(opened.shape, id));
  const file = localFile(model, 'f16');
  if (file === undefined) throw notImportable(`${model.id} takes no imported weights.`);
  return await target.work(model.id, async (work) => {
    const installed = target.installedFile(model);
    if (installed !== undefined) {
      const path = join(target.folder.dir, installed);
      throw notImportable(`${model.id} is already installed: move ${path} away first.`);
    }
    const onBegin = (bytes: number) => requireSpace(target.folder.dir, bytes * BOTH_PRECISIONS);
    const { sha256 } = await writeWhisper(opened, join(work.scratch, file), { ...work, onBegin });
    const path = await target.folder.settle(file, sha256, 'import', work.scratch);
    target.log.info(`Imported ${source} as ${file}, sha256 ${sha256}.`);
    return { id: model.id, path: thenQuantize ? await target.folder.quantize(model, path, work) : path };
  });
}
