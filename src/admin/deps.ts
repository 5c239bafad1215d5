/** The parts of the gateway that the admin pages may see and change. They have access to nothing else. */
import type { Logger } from 'winston';
import type { SettingGroup } from '../config/shown-settings.ts';
import type { Crashes } from '../crashes/crashes.ts';
import type { OnCpu } from '../engine/gpu-fallback.ts';
import type { SlotStatus } from '../engine/slot.ts';
import type { LiveSession } from '../limits/live-places.ts';
import type { Claim } from '../limits/upload-places.ts';
import type { LogLine } from '../observability/log-tail.ts';
import type { Metrics, SlotNow } from '../observability/metrics.ts';
import type { Toggles } from '../observability/toggles.ts';
import type { Inventory } from '../proxy/inventory.ts';
import type { CaptureActions } from './capture-actions.ts';
import type { ModelActions } from './model-actions.ts';

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
export type SlotAndLine = SlotStatus & SlotNow;
