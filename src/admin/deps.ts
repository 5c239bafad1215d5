/** The parts of the gateway that the admin pages may see and change. They have access to nothing else. */
import type { Logger } from 'winston';
import type { StoredCapture } from '../capture/capture-folder.ts';
import type { ReplayReport } from '../capture/replay.ts';
import type { SettingGroup } from '../config/shown-settings.ts';
import type { Crashes } from '../crashes/crashes.ts';
import type { OnCpu } from '../engine/gpu-fallback.ts';
import type { SlotStatus } from '../engine/slot.ts';
import type { Waiting } from '../engine/waiting-line.ts';
import type { LiveSession } from '../limits/live-places.ts';
import type { Claim } from '../limits/upload-places.ts';
import type { ModelProgress } from '../models/source.ts';
import type { LogLine } from '../observability/log-tail.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Toggles } from '../observability/toggles.ts';
import type { Inventory } from '../proxy/inventory.ts';

export interface AdminDeps {
  shutdown: AbortSignal;
  version: string;
  /** The level of the kernels on the CPU, such as `avx2`; '' without an engine. */
  cpuLevel: string;
  log: Logger;
  metrics: Pick<Metrics, 'snapshot' | 'series' | 'perSecond' | 'recent'>;
  toggles: Toggles;
  /** Why some formats of audio cannot be read; null if all of them can. */
  audioProblem(): Promise<string | null>;
  /** The models that run on the CPU now because the GPU failed. */
  onCpu(): OnCpu[];
  slot: { status(): SlotAndLine; stopHolder(): boolean };
  /** The oldest first, as the uploads. */
  live(): readonly LiveNow[];
  uploads(): readonly UploadNow[];
  captures: CaptureActions;
  crashes: Pick<Crashes, 'list'>;
  models: ModelActions;
  upstreams: Pick<Inventory, 'health'>;
  /** The last lines of the log, the newest first. */
  logLines(): LogLine[];
  /** What is wrong with the machine. */
  watch: { troubles(): Trouble[] };
  /** The settings of this gateway, without secrets. */
  settings: readonly SettingGroup[];
}

export type LiveNow = Pick<LiveSession, 'protocol' | 'network' | 'idleMs' | 'status'>;
export type UploadNow = Pick<Claim, 'network' | 'behindMs'>;

/** Something that is wrong now. */
export interface Trouble {
  /** Identifies it while it lasts. */
  key: string;
  level: 'bad' | 'warn';
  /** A sentence without its full stop. It stays the same while nothing changes. */
  says: string;
  /** A word or two for the title of the tab. */
  short: string;
  detail: string | null;
  since: Date;
}

/** The slot, and the requests that wait for it in the order in which they will be served. */
export interface SlotAndLine extends SlotStatus {
  waiting: readonly Waiting[];
}

/** A model as an operator sees it. */
export interface ModelStatus {
  id: string;
  family: string;
  installed: boolean;
  /** The size of the weights on disk, or else of a download, in bytes. */
  bytes: number;
  state: 'absent' | 'loading' | 'resident';
  /** What it takes in memory; 0 when it is not there, or cannot tell. */
  memoryBytes: number;
  /** The number of requests that use the model now. */
  leases: number;
  /** The time since the last use; null when the model is not resident or is in use. */
  idleForMs: number | null;
  /** The download or conversion under way; null without one. */
  progress: ModelProgress | null;
  /** Why the last pull or load from the dashboard failed; null after a success. */
  failure: string | null;
  failedAt: Date | null;
}

export interface ModelActions {
  /** Whether a request downloads the weights that it needs. */
  downloads: boolean;
  list(): ModelStatus[];
  /** The id of the model that requests with this name use now. @throws GatewayError `model_not_found` for any other name */
  find(name: string): string;
  /** Starts a download and returns at once; `list` shows the progress. */
  pull(id: string): void;
  /** Starts to load the model into memory and returns at once. It needs no slot. */
  load(id: string): void;
  /** Unloads the model when no request uses it any more. True when it was resident. */
  unload(id: string): boolean;
  /** Starts to remove the weights from disk, and unloads the model when no request uses it any more. */
  remove(id: string): void;
  /** Unloads every model (contract 3); `remaining` counts those that a request under way still uses. */
  reset(): { evicted: number; remaining: number };
}

export interface CaptureActions {
  dir: string;
  /** Why capture switched itself off, and when; null unless it did. */
  failure(): { at: Date; why: string } | null;
  /** Deletes every capture and returns how many there were. */
  clear(): Promise<number>;
  /** Measures the captures. The result is kept for some seconds, so that not every poll reads the folder. */
  usage(): Promise<{ bytes: number; captures: number }>;
  /** The newest complete capture of a request; null when there is none. */
  find(requestId: string): Promise<StoredCapture | null>;
  /**
   * Sends the captured request to this gateway again and compares the answers.
   * @throws GatewayError `overloaded` while another one is replayed
   */
  replay(capture: StoredCapture, signal: AbortSignal): Promise<ReplayReport>;
}
