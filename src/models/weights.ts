/** What the catalogue says of a model and of its files, which are pinned so that no other bytes are ever loaded. */

export type Precision = 'q8_0' | 'f16';

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

/** A file that this program writes itself, from a pinned source, byte for byte the same everywhere. */
export interface DerivedFile {
  file: string;
  precision: Precision;
  bytes: number;
  sha256: string;
}

/** Dimensions by which an imported checkpoint is recognized. */
export type CheckpointShape = readonly [
  state: number,
  audioLayers: number,
  textLayers: number,
  mels: number,
  vocabulary: number,
];

/** Weights that the store keeps. */
export interface Weights {
  id: string;
  family: string;
  /** Named in errors about these weights (`error.provider`, contract 2.1). */
  provider: string;
  files: Partial<Record<Precision, HubFile>>;
  derived: readonly DerivedFile[];
  /** Whether the q8_0 file can be made here from the f16 one. */
  quantizable?: boolean;
  /** Present where a CTranslate2 checkpoint of these weights can be imported. */
  checkpoint?: CheckpointShape;
}

/** A model that transcribes. */
export interface CatalogueModel extends Weights {
  /** What `SVC_MODEL_DEFAULT_SIZE` may name; absent on models of one size. */
  size?: string;
  /** Other names that requests may use. */
  aliases: readonly string[];
  /** The codes it can be asked for, as the model spells them. */
  languages: readonly string[];
  /** Hints for which `auto` prefers it to the default size. */
  preferredFor: readonly string[];
  /** `constrains`: the model writes the language it was told. `recorded`: it hears the language by itself. */
  languageHint: 'constrains' | 'recorded';
  /** Whether `stream=true` gives each segment when it is decoded. */
  streams: boolean;
  /** Whether it was trained to write English from other languages. */
  translates: boolean;
}

/** Where the weights of one precision lie in the models folder; undefined where there are none. */
export function localFile(weights: Weights, precision: Precision): string | undefined {
  const published = weights.files[precision]?.file;
  if (published !== undefined) return published;
  if (precision === 'q8_0' && weights.quantizable)
    return weights.files.f16?.file.replace(/\.bin$/, '-q8_0.bin');
  return undefined;
}
