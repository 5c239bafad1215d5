/**
 * Every model that the gateway knows. Only this file states the family, size, languages, abilities and files of a
 * model; routing, the models list, imports and downloads derive from it. Files are pinned by revision, size and SHA-256
 * as the LFS metadata of the hub gives them, so that a moved tag or a cut download can never be loaded.
 *
 * A family is a model architecture. Its recognizer (a folder of `transcription/`) and its backend (`native/backends/`)
 * have the name of the family, and the native engine loads a model by it.
 */
import type { CatalogueModel, CheckpointShape, DerivedFile, HubFile, Precision, Weights } from './weights.ts';
import { WHISPER_LANGUAGES } from './whisper-languages.ts';

const EUROPEAN_LANGUAGES = 'bg hr cs da nl en et fi fr de el hu it lv lt mt pl pt ro ru sk sl es sv uk'.split(
  ' ',
);

/** A repository of the hub, at a commit. */
type Source = Pick<HubFile, 'repo' | 'revision'>;
const WHISPER: Source = {
  repo: 'ggerganov/whisper.cpp',
  revision: '5359861c739e955e79d9a303bcbc70fb988958b1',
};
const PARAKEET: Source = {
  repo: 'ggml-org/parakeet-GGUF',
  revision: '35156454d1a39de06863303dd209fd2bed6ee079',
};
const SENSE_VOICE: Source = {
  repo: 'handy-computer/SenseVoiceSmall-gguf',
  revision: '4a08b8e900b38a977e32eb08d5d0697d6e72ba04',
};

/** Null where no published value could be confirmed. */
type Pin = [bytes: HubFile['bytes'], sha256: HubFile['sha256']];

const hubFile = (source: Source, file: string, [bytes, sha256]: Pin): HubFile => ({
  ...source,
  file,
  bytes,
  sha256,
});

const derived = (file: string, precision: Precision, [bytes, sha256]: [number, string]): DerivedFile => ({
  file,
  precision,
  bytes,
  sha256,
});

interface WhisperSize {
  checkpoint: CheckpointShape;
  f16: Pin;
  /** Absent when the hub has no such file; this program then makes it. */
  q8_0?: Pin;
  derived?: DerivedFile[];
  languages?: readonly string[];
  translates?: boolean;
  source?: Source;
  /** The name of the f16 file on the hub; absent for `ggml-SIZE.bin`. */
  file?: string;
}

/** The languages of the first two generations of the vocabulary; only the third has a token for Cantonese. */
const BEFORE_CANTONESE = WHISPER_LANGUAGES.filter((code) => code !== 'yue');

function whisper(size: string, known: WhisperSize): CatalogueModel {
  const { source = WHISPER } = known;
  return {
    id: `multilingual-${size}`,
    family: 'whisper',
    provider: 'multilingual',
    size,
    languages: known.languages ?? BEFORE_CANTONESE,
    preferredFor: [],
    languageHint: 'constrains',
    streams: true,
    translates: known.translates ?? true,
    aligns: true,
    files: {
      f16: hubFile(source, known.file ?? `ggml-${size}.bin`, known.f16),
      ...(known.q8_0 && { q8_0: hubFile(source, `ggml-${size}-q8_0.bin`, known.q8_0) }),
    },
    derived: known.derived ?? [],
    quantizable: true,
    checkpoint: known.checkpoint,
  };
}

/** Without a size, so that `auto` takes it only where no model of several languages can serve. */
function english(size: string, known: WhisperSize): CatalogueModel {
  const { size: _size, ...model } = whisper(`${size}.en`, { ...known, languages: ['en'], translates: false });
  return { ...model, id: `english-${size}` };
}

/** The models. The sizes of a family are in the order of the work that they need, which the `auto` rules rely on. */
export const CATALOGUE: readonly CatalogueModel[] = [
  whisper('tiny', {
    checkpoint: [384, 4, 4, 80, 51865],
    f16: [77691713, 'be07e048e1e599ad46341c8d2a135645097a538221678b7acdd1b1919c6e1b21'],
    q8_0: [43537433, 'c2085835d3f50733e2ff6e4b41ae8a2b8d8110461e18821b09a15c40c42d1cca'],
  }),
  whisper('base', {
    checkpoint: [512, 6, 6, 80, 51865],
    f16: [147951465, '60ed5bc3dd14eea856493d334349b405782ddcaf0028d4b5df4088345fba2efe'],
    q8_0: [81768585, 'c577b9a86e7e048a0b7eada054f4dd79a56bbfa911fbdacf900ac5b567cbb7d9'],
    // These are made from the package index. Its checkpoint has the tokens in rank order, so the bytes differ.
    derived: [
      derived('ggml-base.bin', 'f16', [
        147951465,
        'c0db470711f9496ec80feedb59b0916f10a0c301218e7254a61e7d3d1890dc6d',
      ]),
      derived('ggml-base-q8_0.bin', 'q8_0', [
        81768585,
        '81cfccb75eb8eb4eecf9829be7448c60e3d4abcb5bdb0f00e2c8a726f7ae2f25',
      ]),
    ],
  }),
  whisper('small', {
    checkpoint: [768, 12, 12, 80, 51865],
    f16: [487601967, '1be3a9b2063867b937e64e2ec7483364a79917e157fa98c5d94b5c1fffea987b'],
    q8_0: [264464607, '49c8fb02b65e6049d5fa6c04f81f53b867b5ec9540406812c643f177317f779f'],
  }),
  whisper('medium', {
    checkpoint: [1024, 24, 24, 80, 51865],
    f16: [1533763059, '6c14d5adee5f86394037b4e4e8b59f1673b6cee10e3cf0b11bbdbee79c156208'],
    q8_0: [823369779, '42a1ffcbe4167d224232443396968db4d02d4e8e87e213d3ee2e03095dea6502'],
  }),
  whisper('large-v3-turbo', {
    checkpoint: [1280, 32, 4, 128, 51866],
    f16: [1624555275, '1fc70f774d38eb169993ac391eea357ef47c88757ef72ee5943879b7e8e2bc69'],
    q8_0: [874188075, '317eb69c11673c9de1e1f0d459b253999804ec71ac4c23c17ecf5fbe24e259a1'],
    languages: WHISPER_LANGUAGES,
    // Its fine-tuning left out translation (openai/whisper, discussion 2363).
    translates: false,
  }),
  whisper('distil-large-v3', {
    checkpoint: [1280, 32, 2, 128, 51866],
    f16: [1519521155, '2883a11b90fb10ed592d826edeaee7d2929bf1ab985109fe9e1e7b4d2b69a298'],
    source: {
      repo: 'distil-whisper/distil-large-v3-ggml',
      revision: '0d78dd96ed9fc152325f63b53788fec3b43de031',
    },
    // It was distilled on English speech only.
    languages: ['en'],
    translates: false,
  }),
  whisper('large-v1', {
    checkpoint: [1280, 32, 32, 80, 51865],
    f16: [3094623691, '7d99f41a10525d0206bddadd86760181fa920438b6b33237e3118ff6c83bb53d'],
  }),
  whisper('large-v2', {
    checkpoint: [1280, 32, 32, 80, 51865],
    f16: [3094623691, '9a423fe4d40c82774b6af34115b8b935f34152246eb19e80e376071d3f999487'],
    q8_0: [1656129691, 'fef54e6d898246a65c8285bfa83bd1807e27fadf54d5d4e81754c47634737e8c'],
  }),
  whisper('large-v3', {
    checkpoint: [1280, 32, 32, 128, 51866],
    f16: [3095033483, '64d182b440b98d5203c4f9bd541544d84c605196c4f7b845dfa11fb23594d1e2'],
    languages: WHISPER_LANGUAGES,
  }),
  {
    id: 'european',
    family: 'parakeet',
    provider: 'european',
    languages: EUROPEAN_LANGUAGES,
    preferredFor: EUROPEAN_LANGUAGES,
    languageHint: 'recorded',
    streams: false,
    translates: false,
    files: {
      q8_0: hubFile(PARAKEET, 'ggml-parakeet-tdt-0.6b-v3-q8_0.bin', [
        668757119,
        '4d64e9e96c2792186d072fde0034df0ad670cf680a2f53069052ead827fd600e',
      ]),
      f16: hubFile(PARAKEET, 'ggml-parakeet-tdt-0.6b-v3-f16.bin', [
        1255897319,
        '833bffc9513b2cae867ee9e51633cfd11e4d51aaa5597c8ac02159385a2b426f',
      ]),
    },
    derived: [],
  },
  {
    id: 'cjk',
    family: 'sensevoice',
    provider: 'cjk',
    languages: ['zh', 'yue', 'en', 'ja', 'ko'],
    // Other models are better at English.
    preferredFor: ['zh', 'yue', 'ja', 'ko'],
    languageHint: 'constrains',
    streams: true,
    translates: false,
    files: {
      q8_0: hubFile(SENSE_VOICE, 'SenseVoiceSmall-Q8_0.gguf', [
        252684608,
        '6c759ee4c9748c9b3f7a5a60ca74f0f7e685fb9d45d1378fce7cfd62f59adf29',
      ]),
      f16: hubFile(SENSE_VOICE, 'SenseVoiceSmall-F16.gguf', [null, null]),
    },
    derived: [],
  },
  // Of several that are installed `auto` takes the first, which is the most accurate.
  english('medium', {
    checkpoint: [1024, 24, 24, 80, 51864],
    f16: [1533774781, 'cc37e93478338ec7700281a7ac30a10128929eb8f427dda2e865faa8f6da4356'],
    q8_0: [823382461, '43fa2cd084de5a04399a896a9a7a786064e221365c01700cea4666005218f11c'],
  }),
  english('distil-medium', {
    checkpoint: [1024, 24, 2, 80, 51864],
    f16: [794018180, 'ad53ccb618188b210550e98cc32bf5a13188d86635e395bb11115ed275d6e7aa'],
    file: 'ggml-medium-32-2.en.bin',
    source: {
      repo: 'distil-whisper/distil-medium.en',
      revision: '6e61418885eaf4d5cc9f64e508e80ac5b4c052b7',
    },
  }),
  english('small', {
    checkpoint: [768, 12, 12, 80, 51864],
    f16: [487614201, 'c6138d6d58ecc8322097e0f987c32f1be8bb0a18532a3f88f734d1bbf9c41e5d'],
    q8_0: [264477561, '67a179f608ea6114bd3fdb9060e762b588a3fb3bd00c4387971be4d177958067'],
  }),
  english('distil-small', {
    checkpoint: [768, 12, 4, 80, 51864],
    f16: [336191657, '7691eb11167ab7aaf6b3e05d8266f2fd9ad89c550e433f86ac266ebdee6c970a'],
    source: { repo: 'distil-whisper/distil-small.en', revision: '9e4a67ca4569c30be43a3fe7fba1621e504f0093' },
  }),
  english('base', {
    checkpoint: [512, 6, 6, 80, 51864],
    f16: [147964211, 'a03779c86df3323075f5e796cb2ce5029f00ec8869eee3fdfb897afe36c6d002'],
    q8_0: [81781811, 'a4d4a0768075e13cfd7e19df3ae2dbc4a68d37d36a7dad45e8410c9a34f8c87e'],
  }),
  english('tiny', {
    checkpoint: [384, 4, 4, 80, 51864],
    f16: [77704715, '921e4cf8686fdd993dcd081a5da5b6c365bfde1162e72b08d75ac75289920b1f'],
    q8_0: [43550795, '5bc2b3860aa151a4c6e7bb095e1fcce7cf12c7b020ca08dcec0c6d018bb7dd94'],
    // As those of base. The end of text is no token of the file here.
    derived: [
      derived('ggml-tiny.en.bin', 'f16', [
        77704698,
        '49b35c0f0fa5e8fe48396546d4c3308e7cc3e8a50589273a99710c76fd373fdf',
      ]),
      derived('ggml-tiny.en-q8_0.bin', 'q8_0', [
        43550778,
        'd243ee7babe91b651f98b9fcffb3ea732be9e063f041dec8a0b2bc6bed25927c',
      ]),
    ],
  }),
];

/** The model that finds speech for all others. The API does not list it. */
export const VOICE_ACTIVITY: Weights = {
  id: 'voice-activity',
  family: 'silero',
  provider: 'voxgate',
  files: {
    f16: hubFile(
      { repo: 'ggml-org/whisper-vad', revision: '9ffd54a1e1ee413ddf265af9913beaf518d1639b' },
      'ggml-silero-v6.2.0.bin',
      [885098, '2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987'],
    ),
  },
  derived: [],
};

/**
 * The two networks that tell speakers apart, in one file: neither is of use without the other. The hub publishes neither
 * in a format of ours, so that the file is always made here, of the checkpoints. Its values are f32.
 */
export const DIARIZATION: Weights = {
  id: 'diarization',
  family: 'diarization',
  provider: 'voxgate',
  files: {},
  derived: [
    derived('voxgate-diarization-f32.gguf', 'f16', [
      33377728,
      '8043e0278aefef9a220a199f284a444e29d01ce7a234275aed3caa7726318019',
    ]),
  ],
};

/** The network that tells whether a turn is complete. It is made like the two above, and its values are f32 as well. */
export const TURN_DETECTION: Weights = {
  id: 'turn-detection',
  family: 'turn-detection',
  provider: 'voxgate',
  files: {},
  derived: [
    derived('voxgate-turn-detection-f32.gguf', 'f16', [
      32070432,
      'c0db2628151dbdfa6d1077ed2af0dbb98a30b0810d6b90203ca0f34dd2db732f',
    ]),
  ],
};

/** All weights that the store can hold. */
export const ALL_WEIGHTS: readonly Weights[] = [...CATALOGUE, VOICE_ACTIVITY, DIARIZATION, TURN_DETECTION];

/** The sizes that `SVC_MODEL_DEFAULT_SIZE` may name, smallest first. */
export const SIZES: readonly string[] = CATALOGUE.flatMap(({ size }) => size ?? []);

/** Every value of `error.provider`: the gateway, the recognition models, the two upstreams. */
export const PROVIDERS: readonly string[] = [
  ...new Set(['voxgate', ...CATALOGUE.map(({ provider }) => provider), 'tts', 'llm']),
];

export function findModel(id: string): CatalogueModel | undefined {
  return CATALOGUE.find((model) => model.id === id);
}
