/** What a source of weights takes and gives, and how it reports its progress. */
import type { Precision, Weights } from './weights.ts';

type ModelPhase = 'waiting' | 'downloading' | 'verifying' | 'converting' | 'quantizing';

export interface ModelProgress {
  id: string;
  phase: ModelPhase;
  /** What is worked on: a file, or the source it comes from. */
  what: string;
  doneBytes: number;
  totalBytes: number | null;
}

export type ReportProgress = (progress: Omit<ModelProgress, 'id'>) => void;

export interface FetchRequest {
  model: Weights;
  precision: Precision;
  /** The models folder; the finished file goes here under its catalogue name, whole or not at all. */
  dir: string;
  /** A folder for whatever else is needed, on the same disk; the store empties it. */
  scratch: string;
  signal: AbortSignal;
  report: ReportProgress;
}

interface FetchedFile {
  file: string;
  bytes: number;
  sha256: string;
}

/** A place weights come from. What it returns has been verified against a pinned or published hash. */
export interface ModelSource {
  readonly name: string;
  offers(model: Weights): boolean;
  fetch(request: FetchRequest): Promise<FetchedFile>;
}
