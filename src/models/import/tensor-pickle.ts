/**
 * Reads the pickle of a torch checkpoint (protocol 2, https://docs.python.org/3/library/pickletools.html). A pickle is
 * a program that may name any function of Python. This reader runs none: it knows the few instructions that build
 * tensors, dictionaries and plain values, and refuses all others, and every name beside those listed below.
 */
import { notImportable } from './failure.ts';

/** A tensor as the pickle describes it; its values are in an entry of the archive. */
export class TensorPlace {
  readonly storage: Storage;
  /** In elements of the storage. */
  readonly offset: number;
  readonly shape: readonly number[];
  readonly strides: readonly number[];

  constructor(storage: Storage, offset: number, shape: readonly number[], strides: readonly number[]) {
    this.storage = storage;
    this.offset = offset;
    this.shape = shape;
    this.strides = strides;
  }
}

class Storage {
  readonly type: string;
  readonly key: string;

  constructor(type: string, key: string) {
    this.type = type;
    this.key = key;
  }
}

class Name {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

class Tuple {
  readonly items: readonly Value[];

  constructor(items: readonly Value[]) {
    this.items = items;
  }
}

/** An object that is of no use here. Nothing can be read from it. */
class Inert {}
class List {}
export type PickledDict = Map<string, Value>;
export type Value =
  | null
  | boolean
  | number
  | string
  | PickledDict
  | TensorPlace
  | Storage
  | Name
  | Inert
  | Tuple
  | List;

const TENSOR = 'torch._utils _rebuild_tensor_v2';
const DICT = 'collections OrderedDict';
const STORAGES = new Set(['torch FloatStorage', 'torch LongStorage']);
/** What pyannote writes beside the tensors. It is skipped, as are the arguments. */
const INERT = new Set([
  'torch.torch_version TorchVersion',
  'pyannote.audio.core.task Specifications',
  'pyannote.audio.core.task Problem',
  'pyannote.audio.core.task Resolution',
]);
const MAX_NAME_BYTES = 256;

/** The value of a pickle. @throws GatewayError `not_importable` */
export function readTensorPickle(bytes: Buffer): Value {
  return new Machine(bytes).run();
}

class Machine {
  readonly #bytes: Buffer;
  #at = 0;
  #stack: Value[] = [];
  /** The heights of the stack at the open marks. */
  readonly #marks: number[] = [];
  readonly #memo = new Map<number, Value>();

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  run(): Value {
    for (;;) {
      const opcode = this.u8();
      if (opcode === 0x2e) return this.pop(); // STOP
      const step = STEPS[opcode];
      if (!step) throw refusal(`it uses the instruction 0x${opcode.toString(16)}, which no tensor needs`);
      step(this);
    }
  }

  #take(length: number): number {
    const start = this.#at;
    if (start + length > this.#bytes.length) throw refusal('it is cut short');
    this.#at += length;
    return start;
  }

  u8 = () => this.#bytes.readUInt8(this.#take(1));
  u16 = () => this.#bytes.readUInt16LE(this.#take(2));
  u32 = () => this.#bytes.readUInt32LE(this.#take(4));
  i32 = () => this.#bytes.readInt32LE(this.#take(4));
  f64 = () => this.#bytes.readDoubleBE(this.#take(8));

  text(): string {
    const length = this.u32();
    const start = this.#take(length);
    return this.#bytes.toString('utf8', start, start + length);
  }

  /** A line, which a name takes two of. */
  line(): string {
    const end = this.#bytes.subarray(this.#at, this.#at + MAX_NAME_BYTES).indexOf(0x0a);
    if (end < 0) throw refusal('a name in it has no end');
    const start = this.#take(end + 1);
    return this.#bytes.toString('latin1', start, start + end);
  }

  push(value: Value): void {
    this.#stack.push(value);
  }

  pop(): Value {
    const least = this.#marks.at(-1) ?? 0;
    const value = this.#stack.pop();
    if (value === undefined || this.#stack.length < least) throw refusal('its stack is empty');
    return value;
  }

  top(): Value {
    const value = this.#stack.at(-1);
    if (value === undefined || this.#stack.length <= (this.#marks.at(-1) ?? 0))
      throw refusal('its stack is empty');
    return value;
  }

  mark(): void {
    this.#marks.push(this.#stack.length);
  }

  /** Everything since the last mark. */
  popMark(): Value[] {
    const height = this.#marks.pop();
    if (height === undefined) throw refusal('it has no mark');
    return this.#stack.splice(height);
  }

  popTuple(size: number): void {
    const items = Array.from({ length: size }, () => this.pop()).reverse();
    this.push(new Tuple(items));
  }

  remember(index: number): void {
    this.#memo.set(index, this.top());
  }

  recall(index: number): void {
    const value = this.#memo.get(index);
    if (value === undefined) throw refusal('it refers to a value that it does not have');
    this.push(value);
  }
}

const STEPS: Record<number, (machine: Machine) => void> = {
  128: (m) => {
    if (m.u8() !== 2) throw refusal('its protocol is not 2');
  },
  125: (m) => m.push(new Map()), // EMPTY_DICT
  93: (m) => m.push(new List()), // EMPTY_LIST
  41: (m) => m.push(new Tuple([])), // EMPTY_TUPLE
  40: (m) => m.mark(), // MARK
  88: (m) => m.push(m.text()), // BINUNICODE
  113: (m) => m.remember(m.u8()), // BINPUT
  114: (m) => m.remember(m.u32()), // LONG_BINPUT
  104: (m) => m.recall(m.u8()), // BINGET
  106: (m) => m.recall(m.u32()), // LONG_BINGET
  99: (m) => m.push(knownName(`${m.line()} ${m.line()}`)), // GLOBAL
  116: (m) => m.push(new Tuple(m.popMark())), // TUPLE
  133: (m) => m.popTuple(1), // TUPLE1
  134: (m) => m.popTuple(2), // TUPLE2
  135: (m) => m.popTuple(3), // TUPLE3
  74: (m) => m.push(m.i32()), // BININT
  75: (m) => m.push(m.u8()), // BININT1
  77: (m) => m.push(m.u16()), // BININT2
  71: (m) => m.push(m.f64()), // BINFLOAT
  78: (m) => m.push(null), // NONE
  136: (m) => m.push(true), // NEWTRUE
  137: (m) => m.push(false), // NEWFALSE
  81: (m) => m.push(storage(m.pop())), // BINPERSID
  82: (m) => m.push(reduced(m.pop(), m.pop())), // REDUCE
  129: (m) => m.push(made(m.pop(), m.pop())), // NEWOBJ
  98: (m) => build(m.pop(), m.top()), // BUILD
  101: (m) => append(m.popMark(), m.top()), // APPENDS
  115: (m) => setItems([m.pop(), m.pop()].reverse(), m.top()), // SETITEM
  117: (m) => setItems(m.popMark(), m.top()), // SETITEMS
};

function knownName(text: string): Name {
  if (text === TENSOR || text === DICT || STORAGES.has(text) || INERT.has(text)) return new Name(text);
  throw refusal(`it names ${text.replace(' ', '.')}, which no tensor needs`);
}

/** The tuple ('storage', type, key, device, number of elements); the archive tells the number by its bytes. */
function storage(value: Value): Storage {
  const [kind, type, key] = value instanceof Tuple ? value.items : [];
  if (kind !== 'storage' || !(type instanceof Name) || !STORAGES.has(type.text) || typeof key !== 'string') {
    throw refusal('it refers to something that is not the storage of a tensor');
  }
  return new Storage(type.text.replace('torch ', ''), key);
}

function reduced(args: Value, callable: Value): Value {
  if (!(callable instanceof Name) || !(args instanceof Tuple)) throw refusal('it calls what is no name');
  if (INERT.has(callable.text)) return new Inert();
  if (callable.text === DICT && args.items.length === 0) return new Map();
  if (callable.text !== TENSOR) throw refusal(`it calls ${callable.text} in an unknown way`);
  const [place, offset, shape, strides] = args.items;
  if (!(place instanceof Storage) || !(shape instanceof Tuple) || !(strides instanceof Tuple)) {
    throw refusal('a tensor in it is damaged');
  }
  return new TensorPlace(place, count(offset), shape.items.map(count), strides.items.map(count));
}

function made(args: Value, type: Value): Value {
  if (type instanceof Name && INERT.has(type.text) && args instanceof Tuple) return new Inert();
  throw refusal('it makes an object that no tensor needs');
}

/** The attributes of an object. Those of a dictionary are versions of its modules. */
function build(_state: Value, target: Value): void {
  if (!(target instanceof Map) && !(target instanceof Inert)) throw refusal('it changes what is no object');
}

/** The lists are names of classes, which are not needed. */
function append(_items: Value[], target: Value): void {
  if (!(target instanceof List)) throw refusal('it appends to what is no list');
}

function setItems(items: Value[], target: Value): void {
  if (!(target instanceof Map) || items.length % 2 !== 0) throw refusal('it fills what is no dictionary');
  for (let i = 0; i < items.length; i += 2) {
    const key = items[i];
    if (typeof key !== 'string') throw refusal('a key of a dictionary in it is not a text');
    target.set(key, items[i + 1] ?? null);
  }
}

function count(value: Value | undefined): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  throw refusal('a size in it is impossible');
}

function refusal(why: string): Error {
  return notImportable(`The pickle of a checkpoint is refused: ${why}.`);
}
