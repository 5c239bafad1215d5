/** What the admin pages see of the gateway, and what they may do to it. Everything else is out of their reach. */
import type { Logger } from 'winston';
import type { SlotStatus } from '../engine/slot.ts';
import type { ModelProgress } from '../models/source.ts';
import type { StoredCapture } from '../observability/capture/capture-folder.ts';
import type { ReplayReport } from '../observability/capture/replay.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Toggles } from '../observability/toggles.ts';

export interface AdminDeps {
  version: string;
  log: Logger;
  metrics: Pick<Metrics, 'snapshot' | 'series' | 'perSecond'>;
  toggles: Toggles;
  slot: { status(): SlotStatus; stopHolder(): boolean };
  captures: CaptureActions;
  models: ModelActions;
}

/** A model as an operator sees it. */
export interface ModelStatus {
  id: string;
  family: string;
  installed: boolean;
  /** Of the weights on disk, or of those a download would bring. */
  bytes: number;
  state: 'absent' | 'loading' | 'resident';
  /** Requests using it now. */
  leases: number;
  /** Since its last use; null when it is not resident or in use. */
  idleForMs: number | null;
  /** A download or conversion under way. */
  progress: ModelProgress | null;
  /** Why the last pull or load from here failed; null after a success. */
  failure: string | null;
}

export interface ModelActions {
  list(): ModelStatus[];
  /** The id of a model named by its id or an alias; throws `not_found` for any other name. */
  find(name: string): string;
  /** Begins; `list` shows how it goes. */
  pull(id: string): void;
  /** Begins; needs no slot. */
  load(id: string): void;
  /** Out of memory; requests under way keep theirs. True when it was resident. */
  unload(id: string): boolean;
  /** Every model out of memory (contract 3); `remaining` are those that a request under way still uses. */
  reset(): { evicted: number; remaining: number };
}

export interface CaptureActions {
  dir: string;
  /** Deletes every capture; how many there were. */
  clear(): Promise<number>;
  /** Kept for some seconds: the folder is not read at every look. */
  usage(): Promise<{ bytes: number; captures: number }>;
  /** The newest complete capture of a request; null when there is none (any more). */
  find(requestId: string): Promise<StoredCapture | null>;
  /** Sends it to this gateway again and compares the answers. */
  replay(capture: StoredCapture): Promise<ReplayReport>;
}
