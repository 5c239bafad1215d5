/** Reads tensors of float32 values from a checkpoint that `torch.save` wrote, without torch and without Python. */
import { BUDGETS } from '../../limits/budgets.ts';
import { BoundedFile } from './bounded-file.ts';
import { notImportable } from './failure.ts';
import { openStoredZip } from './stored-zip.ts';
import { type PickledDict, readTensorPickle, TensorPlace, type Value } from './tensor-pickle.ts';
import { countOf, floatsIn, isSameShape } from './tensor-values.ts';

const FOLDER = 'archive';

export interface TorchCheckpoint extends AsyncDisposable {
  /** The values of a tensor, row by row. @throws GatewayError `not_importable` unless it has exactly this shape */
  floats(name: string, shape: readonly number[]): Promise<Float32Array>;
}

/** @throws GatewayError `not_importable` */
export async function openTorchCheckpoint(path: string): Promise<TorchCheckpoint> {
  const file = await BoundedFile.open(path);
  try {
    const zip = await openStoredZip(file);
    const refuse = (why: string) => notImportable(`${path} cannot be imported: ${why}.`);
    const [order, pickle] = [`${FOLDER}/byteorder`, `${FOLDER}/data.pkl`];
    const little =
      !zip.has(order) || String(await zip.read(order, 0, Math.min(zip.bytes(order), 6))) === 'little';
    if (!little) throw refuse('its numbers are not little-endian');
    if (zip.bytes(pickle) > BUDGETS.checkpoint.maxPickleBytes) throw refuse('its pickle is too large');
    const root = readTensorPickle(await zip.read(pickle, 0, zip.bytes(pickle)));
    const tensors = stateOf(root);
    if (!tensors) throw refuse('it holds no dictionary of tensors');
    return {
      async floats(name, shape) {
        const place = tensors.get(name);
        if (!(place instanceof TensorPlace)) throw refuse(`it has no tensor ${name}`);
        const { storage, offset } = place;
        if (storage.type !== 'FloatStorage') throw refuse(`the values of ${name} are not of type float32`);
        if (!isSameShape(place.shape, shape) || !isSameShape(place.strides, rowByRow(shape))) {
          throw refuse(`${name} has the shape ${place.shape.join(' x ')}, expected ${shape.join(' x ')}`);
        }
        return floatsIn(await zip.read(`${FOLDER}/data/${storage.key}`, offset * 4, countOf(shape) * 4));
      },
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  } catch (error) {
    await file[Symbol.asyncDispose]();
    throw error;
  }
}

/** Lightning puts the tensors into a dictionary of their own; plain torch does not. */
function stateOf(root: Value): PickledDict | undefined {
  if (!(root instanceof Map)) return undefined;
  const state = root.get('state_dict');
  if (state === undefined) return root;
  return state instanceof Map ? state : undefined;
}

/** The strides of a tensor whose rows lie one after the other. */
const rowByRow = (shape: readonly number[]) => shape.map((_, i) => countOf(shape.slice(i + 1)));
