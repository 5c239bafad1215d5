/**
 * Reads tensors of float32 values from a checkpoint that `torch.save` wrote, without torch and without Python. It is a
 * zip archive: a pickle (protocol 2, https://docs.python.org/3/library/pickletools.html) describes the tensors, whose
 * values are entries beside it. A pickle is a program that may name any function of Python. Nothing of it is run here:
 * a call is only noted down, and every name and every instruction that no tensor needs is refused. The file itself is
 * one with a pinned hash (package-recipes.ts), so that its parts fit together.
 */
import { readFile } from 'node:fs/promises';
import { unzipSync } from 'fflate';
import { BUDGETS } from '../../limits/budgets.ts';
import { notImportable } from './failure.ts';
import { countOf, floatsIn, isSameShape } from './tensor-values.ts';

export type TorchCheckpoint = Awaited<ReturnType<typeof openTorchCheckpoint>>;

/** What a pickle calls, and the arguments. */
interface Call {
  name: string;
  args: unknown;
}

/** The storage of a tensor, the offset of its first value there, and its shape. */
type TensorArgs = [storage: [kind: 'storage', type: string, key: string], offset: number, shape: number[]];

const TENSOR = 'torch._utils _rebuild_tensor_v2';
const DICT = 'collections OrderedDict';
const FLOATS = 'torch FloatStorage';
/** The last four are what pyannote writes beside the tensors. */
const NAMES = new Set([
  ...[TENSOR, DICT, FLOATS, 'torch LongStorage', 'torch.torch_version TorchVersion'],
  ...['Specifications', 'Problem', 'Resolution'].map((name) => `pyannote.audio.core.task ${name}`),
]);

/** @throws GatewayError `not_importable` */
export async function openTorchCheckpoint(path: string) {
  const refuse = (why: string) => notImportable(`${path} cannot be imported: ${why}.`);
  const { maxEntries, maxPickleBytes } = BUDGETS.checkpoint;
  const entries = unzipSync(await readFile(path));
  if (Object.keys(entries).length > maxEntries) throw refuse(`it has more than ${maxEntries} entries`);
  const pickle = entries['archive/data.pkl'];
  if (pickle === undefined) throw refuse('it is no archive that torch wrote');
  if (pickle.length > maxPickleBytes) throw refuse('its pickle is too large');
  const root = readPickle(Buffer.from(pickle)) as Map<string, unknown>;
  // Lightning puts the tensors into a dictionary of their own; plain torch does not.
  const tensors = (root.get('state_dict') ?? root) as Map<string, Call>;
  return {
    /** The values of a tensor, row by row. @throws GatewayError `not_importable` unless it has exactly this shape */
    floats(name: string, shape: readonly number[]): Float32Array {
      const call = tensors.get(name);
      if (call?.name !== TENSOR) throw refuse(`it has no tensor ${name}`);
      const [[, type, key], offset, found] = call.args as TensorArgs;
      const storage = entries[`archive/data/${key}`];
      if (type !== FLOATS || storage === undefined)
        throw refuse(`the values of ${name} are not of type float32`);
      if (!isSameShape(found, shape))
        throw refuse(`${name} has the shape ${found.join(' x ')}, expected ${shape.join(' x ')}`);
      return floatsIn(storage.subarray(offset * 4, (offset + countOf(shape)) * 4));
    },
  };
}

/** The value of a pickle: a dictionary is a Map, a list or a tuple an array, and a call of a function a `Call`. */
function readPickle(bytes: Buffer): unknown {
  let at = 0;
  const skip = (length: number) => {
    at += length;
    return at - length;
  };
  const u8 = () => bytes.readUInt8(skip(1));
  const u32 = () => bytes.readUInt32LE(skip(4));
  const text = (length: number) => bytes.toString('utf8', skip(length), at);
  const line = () => text(bytes.indexOf('\n', at) + 1 - at).trimEnd();
  const memo = new Map<number, unknown>();
  const stack: unknown[] = [];
  /** The heights of the stack at the open marks. */
  const marks: number[] = [];
  const last = (count: number) => stack.splice(stack.length - count);
  const sinceMark = () => stack.splice(marks.pop() ?? 0);
  const top = () => stack.at(-1);
  const note = () => {
    const [name, args] = last(2) as [string, unknown];
    stack.push(name === DICT ? new Map() : { name, args });
  };
  const setItems = (items: unknown[]) => {
    for (let i = 0; i < items.length; i += 2) (top() as Map<unknown, unknown>).set(items[i], items[i + 1]);
  };
  const steps: Readonly<Record<string, () => unknown>> = {
    '\x80': u8, // PROTO
    '}': () => stack.push(new Map()), // EMPTY_DICT
    ']': () => stack.push([]), // EMPTY_LIST
    ')': () => stack.push([]), // EMPTY_TUPLE
    '(': () => marks.push(stack.length), // MARK
    X: () => stack.push(text(u32())), // BINUNICODE
    q: () => memo.set(u8(), top()), // BINPUT
    r: () => memo.set(u32(), top()), // LONG_BINPUT
    h: () => stack.push(memo.get(u8())), // BINGET
    j: () => stack.push(memo.get(u32())), // LONG_BINGET
    c: () => stack.push(knownName(`${line()} ${line()}`)), // GLOBAL
    t: () => stack.push(sinceMark()), // TUPLE
    '\x85': () => stack.push(last(1)), // TUPLE1
    '\x86': () => stack.push(last(2)), // TUPLE2
    '\x87': () => stack.push(last(3)), // TUPLE3
    J: () => stack.push(bytes.readInt32LE(skip(4))), // BININT
    K: () => stack.push(u8()), // BININT1
    M: () => stack.push(bytes.readUInt16LE(skip(2))), // BININT2
    G: () => stack.push(bytes.readDoubleBE(skip(8))), // BINFLOAT
    N: () => stack.push(null), // NONE
    '\x88': () => stack.push(true), // NEWTRUE
    '\x89': () => stack.push(false), // NEWFALSE
    Q: () => undefined, // BINPERSID: the tuple on the stack says which storage it is
    R: note, // REDUCE
    '\x81': note, // NEWOBJ
    b: () => stack.pop(), // BUILD: attributes of an object, which are not needed
    e: sinceMark, // APPENDS: names of classes, which are not needed
    s: () => setItems(last(2)), // SETITEM
    u: () => setItems(sinceMark()), // SETITEMS
  };
  for (;;) {
    const opcode = u8();
    const instruction = String.fromCharCode(opcode);
    if (instruction === '.') return stack.pop(); // STOP
    const step = steps[instruction];
    if (step === undefined) throw refusal(`it uses the instruction 0x${opcode.toString(16)}`);
    step();
  }
}

function knownName(name: string): string {
  if (NAMES.has(name)) return name;
  throw refusal(`it names ${name.replace(' ', '.')}`);
}

const refusal = (why: string) =>
  notImportable(`The pickle of a checkpoint is refused: ${why}, which no tensor needs.`);
