/** The interface of a source of weights, and how it reports its progress. */
import type { WrittenFile } from './import/hashed-file.ts';
import type { Precision, Weights } from './weights.ts';

type ModelPhase = 'waiting' | 'downloading' | 'verifying' | 'converting' | 'quantizing';

export interface ModelProgress {
  id: string;
  phase: ModelPhase;
  /** The object of the work: a file, or the source that it comes from. */
  what: string;
  doneBytes: number;
  totalBytes: number | null;
}

export type ReportProgress = (progress: Omit<ModelProgress, 'id'>) => void;

export interface FetchRequest {
  model: Weights;
  precision: Precision;
  /** The models folder. The finished file goes here under its name in the catalogue, complete or not at all. */
  dir: string;
  /** A folder on the same disk for temporary files; the store removes it afterwards. */
  scratch: string;
  signal: AbortSignal;
  report: ReportProgress;
}

/** A place that weights come from. It verifies each file against a pinned or published hash. */
export interface ModelSource {
  readonly name: string;
  offers(model: Weights): boolean;
  fetch(request: FetchRequest): Promise<WrittenFile & { file: string }>;
}
