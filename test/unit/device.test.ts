/** A device is chosen between GPU and CPU, and the CPU takes over when the GPU fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseDevice, explainCpu } from '../../src/engine/device.ts';
import { loadWithFallback } from '../../src/engine/gpu-fallback.ts';
import { type DecodedSegment, NativeError, type TranscriptionModel } from '../../src/engine/types.ts';

/** The models of these tests ignore the options. */
const chunkOptions = {} as Parameters<TranscriptionModel['transcribe']>[1];
const cpu = { name: 'CPU', gpu: false, memoryBytes: 0 };
const gpu = (name: string) => ({ name, gpu: true, memoryBytes: 0 });
const cuda = (n: number) => gpu(`CUDA${n}`);
const vulkan = (n: number) => gpu(`Vulkan${n}`);

test('auto takes the first GPU, and the CPU where there is none', () => {
  assert.deepEqual(chooseDevice('auto', [cpu, cuda(0), cuda(1)]), { device: 'cuda:0', gpu: true });
  assert.deepEqual(chooseDevice('auto', [cpu]), { device: 'cpu', gpu: false });
  assert.deepEqual(chooseDevice('auto', []), { device: 'cpu', gpu: false });
});

test('the device that is asked for is taken where it is there', () => {
  assert.deepEqual(chooseDevice('cpu', [cpu, cuda(0)]), { device: 'cpu', gpu: false });
  assert.deepEqual(chooseDevice('cuda', [cpu, cuda(0)]), { device: 'cuda:0', gpu: true });
  assert.deepEqual(chooseDevice('cuda:1', [cuda(0), cpu, cuda(1)]), { device: 'cuda:1', gpu: true });
});

test('the CPU stands in for a GPU that is not there', () => {
  assert.deepEqual(chooseDevice('cuda:1', [cpu, cuda(0)]), { device: 'cpu', gpu: false });
});

test('a device is counted among those that its own library sees, and auto prefers CUDA', () => {
  const both = [cpu, cuda(0), vulkan(0), vulkan(1)];
  assert.deepEqual(chooseDevice('auto', both), { device: 'cuda:0', gpu: true });
  assert.deepEqual(chooseDevice('auto', [cpu, vulkan(0)]), { device: 'vulkan:0', gpu: true });
  assert.deepEqual(chooseDevice('vulkan:1', both), { device: 'vulkan:1', gpu: true });
  assert.deepEqual(chooseDevice('vulkan', [cpu, cuda(0)]), { device: 'cpu', gpu: false });
  assert.deepEqual(chooseDevice('cuda:1', both), { device: 'cpu', gpu: false });
});

const here = { libraries: ['cuda'] as const, present: true };
const bare = { libraries: [] };

test('nothing is said where a GPU is used or the CPU was asked for', () => {
  assert.equal(explainCpu('auto', [cpu, cuda(0)], here), null);
  assert.equal(explainCpu('cuda', [cpu, cuda(0)], here), null);
  assert.equal(explainCpu('cpu', [cpu], { ...bare, present: true }), null);
});

test('a machine with a GPU and a build without its library is a warning with the command that builds it', () => {
  for (const wanted of ['auto', 'cuda']) {
    const said = explainCpu(wanted, [cpu], { ...bare, present: true });
    assert.equal(said?.level, 'warn');
    assert.match(said.message, /models run on the CPU/i);
    assert.match(said.message, /npm run build -- cuda/);
    assert.match(said.message, /experimental/);
    assert.match(said.message, /SVC_DEVICE=cpu/);
  }
});

test('a library that finds no GPU is a warning that sends to the driver', () => {
  const said = explainCpu('auto', [cpu], here);
  assert.equal(said?.level, 'warn');
  assert.match(said.message, /nvidia-smi/);
  assert.doesNotMatch(said.message, /build -- cuda/);
});

test('a machine without a GPU is a fact, not a warning', () => {
  const said = explainCpu('auto', [cpu], { ...bare, present: false });
  assert.equal(said?.level, 'info');
  assert.match(said.message, /no NVIDIA GPU/);
});

test('a GPU asked for by number that is not there is a warning that names what there is', () => {
  const said = explainCpu('cuda:1', [cpu, cuda(0)], here);
  assert.equal(said?.level, 'warn');
  assert.match(said.message, /SVC_DEVICE is cuda:1, but 1 GPU is usable/);
  const none = explainCpu('cuda', [cpu], { ...bare, present: false });
  assert.match(none?.message ?? '', /SVC_DEVICE is cuda, but 0 GPUs are usable.*build -- cuda/);
  assert.equal(none?.level, 'warn');
});

test('a library that is missing or finds no GPU is named, with its own command and tool', () => {
  const absent = explainCpu('vulkan', [cpu, cuda(0)], here);
  assert.match(
    absent?.message ?? '',
    /0 GPUs are usable.*Vulkan library is not installed: run npm run build -- vulkan/,
  );
  const idle = { libraries: ['vulkan'] as const, present: false };
  assert.match(explainCpu('vulkan', [cpu], idle)?.message ?? '', /Vulkan library .* vulkaninfo/);
  assert.equal(explainCpu('auto', [cpu], idle)?.message, 'Models run on the CPU: no GPU was found here');
});

function model(on: string, error?: Error): TranscriptionModel & { closed: boolean } {
  const segments: DecodedSegment[] = [0, 1].map((n) => ({
    startMs: n * 1000,
    endMs: n * 1000 + 1000,
    tokens: [],
    noSpeechProb: 0,
    language: on,
  }));
  return {
    closed: false,
    info: {
      family: on,
      languages: ['en'],
      multilingual: false,
      audioContext: 1500,
      textContext: 448,
      lanes: on === 'cpu' ? 2 : 1,
      memoryBytes: 1,
    },
    async transcribe() {
      if (error) throw error;
      return segments;
    },
    async detectLanguage() {
      if (error) throw error;
      return { language: 'en', probability: 1, probabilities: { en: 1 } };
    },
    async lane(index) {
      return index === 0 ? this : model(`${on} lane ${index}`);
    },
    async close() {
      this.closed = true;
    },
  };
}

const languagesOf = (segments: DecodedSegment[]) => segments.map(({ language }) => language);

const failed = new NativeError('inference_failed', 'CUDA error: unspecified launch failure');

async function loaded(gpu: () => Promise<TranscriptionModel>) {
  const told: NativeError[] = [];
  const onCpu = model('cpu');
  const wrapped = await loadWithFallback({
    gpu: 'cuda:0',
    load: (device) => (device === 'cpu' ? Promise.resolve(onCpu) : gpu()),
    onFallback: (error) => told.push(error),
    onReturn: () => assert.fail('not so soon'),
  });
  return { wrapped, told, onCpu };
}

test('a GPU that works is used, and nothing is said', async () => {
  const { wrapped, told } = await loaded(async () => model('gpu'));
  const segments = await wrapped.transcribe(new Float32Array(1), chunkOptions);
  assert.deepEqual(languagesOf(segments), ['gpu', 'gpu']);
  assert.equal(wrapped.info.lanes, 1);
  assert.equal(await wrapped.lane(0), wrapped);
  assert.deepEqual(told, []);
});

test('weights for which a GPU has no memory are loaded on the CPU', async () => {
  const error = new NativeError('out_of_memory', 'CUDA error: out of memory');
  const { wrapped, told } = await loaded(() => Promise.reject(error));
  assert.equal(wrapped.info.family, 'cpu');
  assert.deepEqual(told, [error]);
});

test('a chunk whose GPU is lost is recognized again on the CPU', async () => {
  const onGpu = model('gpu', failed);
  const { wrapped, told, onCpu } = await loaded(async () => onGpu);
  const segments = await wrapped.transcribe(new Float32Array(1), chunkOptions);
  assert.deepEqual(languagesOf(segments), ['cpu', 'cpu']);
  assert.equal(onGpu.closed, true);
  assert.deepEqual(told, [failed]);

  await wrapped.transcribe(new Float32Array(1), chunkOptions);
  assert.equal(told.length, 1, 'told once, then the CPU is simply used');
  const second = await wrapped.lane(1);
  const [segment] = await second.transcribe(new Float32Array(1), chunkOptions);
  assert.equal(segment?.language, 'cpu lane 1', 'with every lane it has');
  await wrapped.close();
  assert.equal(onCpu.closed, true);
});

test('the lanes of a GPU that is lost move together, and each chunk is recognized again', async () => {
  const closed = new NativeError('closed', 'The model was closed');
  let close: () => void = () => undefined;
  const isClosed = new Promise<never>((_, reject) => {
    close = () => reject(closed);
  });
  isClosed.catch(() => undefined);
  const onGpu: ReturnType<typeof model> = {
    ...model('gpu', failed),
    async close() {
      close();
    },
  };
  onGpu.info.lanes = 4;
  // Two lanes fail, and the others compute until the model is closed.
  onGpu.lane = async (index) =>
    index < 2
      ? { ...model('gpu', failed), info: onGpu.info }
      : {
          ...model('gpu'),
          info: onGpu.info,
          transcribe: () => isClosed,
        };
  const { wrapped, told } = await loaded(async () => onGpu);
  const heard = await Promise.all(
    [0, 1, 2, 3].map(async (index) => {
      const lane = await wrapped.lane(index);
      return languagesOf(await lane.transcribe(new Float32Array(1), chunkOptions));
    }),
  );
  const onLanes = ['cpu', 'cpu lane 1', 'cpu', 'cpu lane 1'].map((name) => [name, name]);
  assert.deepEqual(heard, onLanes, 'on the two lanes of the CPU');
  assert.deepEqual(told, [failed]);
});

test('a GPU that fails while its model is closed is replaced by nothing', async () => {
  let fail: (error: Error) => void = () => undefined;
  const isLost = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const onGpu = { ...model('gpu'), transcribe: () => isLost, close: async () => fail(failed) };
  const { wrapped, told } = await loaded(async () => onGpu);
  const heard = wrapped.transcribe(new Float32Array(1), chunkOptions);
  await Promise.all([wrapped.close(), assert.rejects(heard, failed)]);
  assert.deepEqual(told, []);
});

test('a CPU that has no memory either fails the chunk, and the next one tries again', async () => {
  const noMemory = new NativeError('out_of_memory', 'Not enough memory for the weights');
  const onCpu = model('cpu');
  let tries = 0;
  const wrapped = await loadWithFallback({
    gpu: 'cuda:0',
    load: async (device) => {
      if (device !== 'cpu') return model('gpu', failed);
      if (tries++ === 0) throw noMemory;
      return onCpu;
    },
    onFallback: () => undefined,
    onReturn: () => undefined,
  });
  await assert.rejects(wrapped.transcribe(new Float32Array(1), chunkOptions), noMemory);
  assert.equal((await wrapped.transcribe(new Float32Array(1), chunkOptions)).length, 2);
});

test('a GPU lost while the language is detected is replaced by the CPU', async () => {
  const { wrapped, told } = await loaded(async () => model('gpu', failed));
  const guess = await wrapped.detectLanguage(new Float32Array(1), { audioContext: 0 });
  assert.equal(guess.language, 'en');
  assert.deepEqual(told, [failed]);
});

/** A model whose GPU has `full()`, with a clock of its own. */
async function returning(full: () => boolean, onCpu = model('cpu')) {
  const minutes = { now: 0 };
  const tries: number[] = [];
  let returns = 0;
  const wrapped = await loadWithFallback({
    gpu: 'cuda:0',
    now: () => minutes.now * 60_000,
    async load(device) {
      if (device === 'cpu') return onCpu;
      tries.push(minutes.now);
      if (full()) throw new NativeError('out_of_memory', 'CUDA error: out of memory');
      return model('gpu');
    },
    onFallback: () => undefined,
    onReturn: () => {
      returns += 1;
    },
  });
  const heardOn = async () => (await wrapped.transcribe(new Float32Array(1), chunkOptions))[0]?.language;
  return { minutes, tries, wrapped, onCpu, heardOn, returns: () => returns };
}

test('a GPU that was full is tried again after a minute, and used as soon as it has memory', async () => {
  let isFull = true;
  const { minutes, tries, onCpu, heardOn, returns } = await returning(() => isFull);
  isFull = false;
  minutes.now = 0.9;
  assert.equal(await heardOn(), 'cpu');
  assert.deepEqual(tries, [0]);
  minutes.now = 1;
  assert.equal(await heardOn(), 'cpu', 'the CPU goes on while the GPU is loaded');
  await new Promise(setImmediate);
  assert.equal(await heardOn(), 'gpu');
  assert.deepEqual([tries, returns(), onCpu.closed], [[0, 1], 1, true]);
});

test('a GPU that stays full is tried five times, each time after twice the time', async () => {
  const { minutes, tries, heardOn, returns } = await returning(() => true);
  for (; minutes.now < 300; minutes.now += 1) {
    assert.equal(await heardOn(), 'cpu');
    await new Promise(setImmediate);
  }
  assert.deepEqual([tries, returns()], [[0, 1, 3, 7, 15, 31], 0]);
});

test('what the CPU computes when the GPU is back is not cut off', async () => {
  let isFull = true;
  let finish: () => void = () => undefined;
  const isFinished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const { transcribe } = model('cpu');
  const slow = model('cpu');
  slow.transcribe = async (...given) => {
    await isFinished;
    assert.equal(slow.closed, false);
    return transcribe(...given);
  };
  const { minutes, heardOn, onCpu } = await returning(() => isFull, slow);
  isFull = false;
  const first = heardOn();
  minutes.now = 1;
  const second = heardOn();
  await new Promise(setImmediate);
  assert.equal(await heardOn(), 'gpu');
  assert.equal(onCpu.closed, false);
  finish();
  assert.deepEqual(await Promise.all([first, second]), ['cpu', 'cpu']);
  assert.equal(onCpu.closed, true);
});

test('an error that is not the failure of a GPU is passed on', async () => {
  for (const error of [
    new NativeError('invalid_argument', 'no'),
    new NativeError('closed', 'closed'),
    new DOMException('left', 'AbortError'),
  ]) {
    const { wrapped, told } = await loaded(async () => model('gpu', error));
    await assert.rejects(wrapped.transcribe(new Float32Array(1), chunkOptions), error);
    assert.deepEqual(told, []);
  }
});

test('a file that no device can use is refused', async () => {
  const error = new NativeError('load_failed', 'not a model');
  await assert.rejects(
    loadWithFallback({
      gpu: 'cuda:0',
      load: () => Promise.reject(error),
      onFallback: () => assert.fail('nothing to go on on'),
      onReturn: () => assert.fail('nothing to go back to'),
    }),
    error,
  );
});
