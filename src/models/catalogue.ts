import type { Provider } from '../errors.ts';

/**
 * Every model the gateway knows, pinned: revision, size and SHA-256 of each file as the hub's own LFS metadata
 * gives them. The store uses a file only when both match, so a moved tag or a cut download can never be loaded.
 * Which engines this build can run is the caller's business.
 */

export type Precision = 'q8_0' | 'f16';
export type ModelEngine = 'whisper' | 'parakeet' | 'sensevoice' | 'silero';

export interface HubFile {
  repo: string;
  /** A commit, never a branch. */
  revision: string;
  /** Also the file's name in the models folder. */
  file: string;
  /** Null where no published figure could be confirmed; the hub's own LFS headers are then required. */
  bytes: number | null;
  sha256: string | null;
}

/** A file this program writes itself, from a pinned source, byte for byte the same everywhere. */
interface DerivedFile {
  file: string;
  precision: Precision;
  bytes: number;
  sha256: string;
}

export interface CatalogueModel {
  id: string;
  engine: ModelEngine;
  /** Named in errors about this model. */
  provider: Provider;
  files: Partial<Record<Precision, HubFile>>;
  derived: readonly DerivedFile[];
}

/** The voice activity model; it is no model of its own in the API. */
export const VOICE_ACTIVITY_ID = 'voice-activity';

const WHISPER_REPO = 'ggerganov/whisper.cpp';
const WHISPER_REVISION = '5359861c739e955e79d9a303bcbc70fb988958b1';

type Pin = [bytes: number, sha256: string];

function whisper(size: string, f16: Pin, q8?: Pin, derived: DerivedFile[] = []): CatalogueModel {
  const hubFile = (file: string, [bytes, sha256]: Pin): HubFile => ({
    repo: WHISPER_REPO,
    revision: WHISPER_REVISION,
    file,
    bytes,
    sha256,
  });
  const files: CatalogueModel['files'] = { f16: hubFile(`ggml-${size}.bin`, f16) };
  if (q8) files.q8_0 = hubFile(`ggml-${size}-q8_0.bin`, q8);
  return { id: `multilingual-${size}`, engine: 'whisper', provider: 'multilingual', files, derived };
}

export const CATALOGUE: readonly CatalogueModel[] = [
  whisper(
    'tiny',
    [77691713, 'be07e048e1e599ad46341c8d2a135645097a538221678b7acdd1b1919c6e1b21'],
    [43537433, 'c2085835d3f50733e2ff6e4b41ae8a2b8d8110461e18821b09a15c40c42d1cca'],
  ),
  whisper(
    'base',
    [147951465, '60ed5bc3dd14eea856493d334349b405782ddcaf0028d4b5df4088345fba2efe'],
    [81768585, 'c577b9a86e7e048a0b7eada054f4dd79a56bbfa911fbdacf900ac5b567cbb7d9'],
    // From the package index: the checkpoint's tokens are in rank order there, so the bytes differ.
    [
      {
        file: 'ggml-base.bin',
        precision: 'f16',
        bytes: 147951465,
        sha256: 'c0db470711f9496ec80feedb59b0916f10a0c301218e7254a61e7d3d1890dc6d',
      },
      {
        file: 'ggml-base-q8_0.bin',
        precision: 'q8_0',
        bytes: 81768585,
        sha256: '81cfccb75eb8eb4eecf9829be7448c60e3d4abcb5bdb0f00e2c8a726f7ae2f25',
      },
    ],
  ),
  whisper(
    'small',
    [487601967, '1be3a9b2063867b937e64e2ec7483364a79917e157fa98c5d94b5c1fffea987b'],
    [264464607, '49c8fb02b65e6049d5fa6c04f81f53b867b5ec9540406812c643f177317f779f'],
  ),
  whisper(
    'medium',
    [1533763059, '6c14d5adee5f86394037b4e4e8b59f1673b6cee10e3cf0b11bbdbee79c156208'],
    [823369779, '42a1ffcbe4167d224232443396968db4d02d4e8e87e213d3ee2e03095dea6502'],
  ),
  // The hub has no q8_0 of large-v1, large-v3 and distil-large-v3: they are quantised here.
  whisper('large-v1', [3094623691, '7d99f41a10525d0206bddadd86760181fa920438b6b33237e3118ff6c83bb53d']),
  whisper(
    'large-v2',
    [3094623691, '9a423fe4d40c82774b6af34115b8b935f34152246eb19e80e376071d3f999487'],
    [1656129691, 'fef54e6d898246a65c8285bfa83bd1807e27fadf54d5d4e81754c47634737e8c'],
  ),
  whisper('large-v3', [3095033483, '64d182b440b98d5203c4f9bd541544d84c605196c4f7b845dfa11fb23594d1e2']),
  whisper(
    'large-v3-turbo',
    [1624555275, '1fc70f774d38eb169993ac391eea357ef47c88757ef72ee5943879b7e8e2bc69'],
    [874188075, '317eb69c11673c9de1e1f0d459b253999804ec71ac4c23c17ecf5fbe24e259a1'],
  ),
  {
    id: 'multilingual-distil-large-v3',
    engine: 'whisper',
    provider: 'multilingual',
    files: {
      f16: {
        repo: 'distil-whisper/distil-large-v3-ggml',
        revision: '0d78dd96ed9fc152325f63b53788fec3b43de031',
        file: 'ggml-distil-large-v3.bin',
        bytes: 1519521155,
        sha256: '2883a11b90fb10ed592d826edeaee7d2929bf1ab985109fe9e1e7b4d2b69a298',
      },
    },
    derived: [],
  },
  {
    id: 'european',
    engine: 'parakeet',
    provider: 'european',
    files: {
      q8_0: {
        repo: 'ggml-org/parakeet-GGUF',
        revision: '35156454d1a39de06863303dd209fd2bed6ee079',
        file: 'ggml-parakeet-tdt-0.6b-v3-q8_0.bin',
        bytes: 668757119,
        sha256: '4d64e9e96c2792186d072fde0034df0ad670cf680a2f53069052ead827fd600e',
      },
      f16: {
        repo: 'ggml-org/parakeet-GGUF',
        revision: '35156454d1a39de06863303dd209fd2bed6ee079',
        file: 'ggml-parakeet-tdt-0.6b-v3-f16.bin',
        bytes: 1255897319,
        sha256: '833bffc9513b2cae867ee9e51633cfd11e4d51aaa5597c8ac02159385a2b426f',
      },
    },
    derived: [],
  },
  {
    id: 'cjk',
    engine: 'sensevoice',
    provider: 'cjk',
    files: {
      q8_0: {
        repo: 'handy-computer/SenseVoiceSmall-gguf',
        revision: '4a08b8e900b38a977e32eb08d5d0697d6e72ba04',
        file: 'SenseVoiceSmall-Q8_0.gguf',
        bytes: 252684608,
        sha256: '6c759ee4c9748c9b3f7a5a60ca74f0f7e685fb9d45d1378fce7cfd62f59adf29',
      },
      f16: {
        repo: 'handy-computer/SenseVoiceSmall-gguf',
        revision: '4a08b8e900b38a977e32eb08d5d0697d6e72ba04',
        file: 'SenseVoiceSmall-F16.gguf',
        bytes: null,
        sha256: null,
      },
    },
    derived: [],
  },
  {
    id: VOICE_ACTIVITY_ID,
    engine: 'silero',
    provider: 'voxgate',
    files: {
      f16: {
        repo: 'ggml-org/whisper-vad',
        revision: '9ffd54a1e1ee413ddf265af9913beaf518d1639b',
        file: 'ggml-silero-v6.2.0.bin',
        bytes: 885098,
        sha256: '2aa269b785eeb53a82983a20501ddf7c1d9c48e33ab63a41391ac6c9f7fb6987',
      },
    },
    derived: [],
  },
];

export function findModel(id: string): CatalogueModel | undefined {
  return CATALOGUE.find((model) => model.id === id);
}

/** Where the weights of one precision lie in the models folder; the q8_0 of a Whisper may be made here. */
export function localFile(model: CatalogueModel, precision: Precision): string | undefined {
  const published = model.files[precision]?.file;
  if (published !== undefined) return published;
  if (precision === 'q8_0' && model.engine === 'whisper') {
    return model.files.f16?.file.replace(/\.bin$/, '-q8_0.bin');
  }
  return undefined;
}
