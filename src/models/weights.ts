/** The types of the catalogue. Files have pins, so that no other bytes are ever loaded. */

export type Precision = 'q8_0' | 'f16';

export interface HubFile {
  repo: string;
  /** A commit, never a branch. */
  revision: string;
  /** The name of the file in the repository and in the models folder. */
  file: string;
  /** Null when no published value could be confirmed; the LFS headers of the hub are then required. */
  bytes: number | null;
  sha256: string | null;
}

/** A file that this program makes from a pinned source, with the same bytes on every machine. */
export interface DerivedFile {
  file: string;
  precision: Precision;
  bytes: number;
  sha256: string;
}

/** The dimensions by which an imported checkpoint is identified. */
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
  /** The provider in errors about these weights (`error.provider`, contract 2.1). */
  provider: string;
  files: Partial<Record<Precision, HubFile>>;
  derived: readonly DerivedFile[];
  /** True when this program can make the q8_0 file from the f16 file. */
  quantizable?: boolean;
  /** Present when a CTranslate2 checkpoint of these weights can be imported. */
  checkpoint?: CheckpointShape;
}

/** A model that transcribes. */
export interface CatalogueModel extends Weights {
  /** A size that `SVC_MODEL_DEFAULT_SIZE` may name; absent on models of one size. */
  size?: string;
  /** The language codes that the model takes, as it spells them. */
  languages: readonly string[];
  /** The languages for which `auto` prefers this model to the default size. */
  preferredFor: readonly string[];
  /** `constrains`: the model writes in the given language. `recorded`: the model detects the language itself. */
  languageHint: 'constrains' | 'recorded';
  /** True when `stream=true` gives each segment as soon as it is decoded. */
  streams: boolean;
  /** True when the model was trained to write English text for speech in other languages. */
  translates: boolean;
  /** True when the model can say when each word of a given text is spoken. */
  aligns?: true;
}

/** The name of the file for one precision in the models folder; undefined when there is no such file. */
export function localFile(weights: Weights, precision: Precision): string | undefined {
  const file = weights.files[precision] ?? weights.derived.find((derived) => derived.precision === precision);
  if (file !== undefined) return file.file;
  if (precision === 'q8_0' && weights.quantizable)
    return weights.files.f16?.file.replace(/\.bin$/, '-q8_0.bin');
  return undefined;
}
