/**
 * The models resident in memory. A request leases a model for as long as it uses it. A model without a lease is
 * unloaded after the idle time (idle eviction). An evicted model is unloaded as soon as its last lease ends, so that
 * requests in flight finish with the model they started with (contract 3, "ASR model cache"). The memory of all models
 * has a limit: for room, the least recently used (LRU) idle model is unloaded first, and where only models in use are
 * left, the request is out of memory.
 */
import { GatewayError } from '../errors.ts';

export interface Closable {
  close(): Promise<void>;
}

export interface Lease<M> extends AsyncDisposable {
  readonly model: M;
}

export interface CacheEntry {
  key: string;
  state: 'loading' | 'resident';
  leases: number;
  idleForMs: number;
  /** What it counts against the limit on memory; 0 when that is unknown. */
  memoryBytes: number;
}

export interface CacheOptions<M> {
  load(key: string): Promise<M>;
  /** Idle milliseconds before a model is unloaded; 0 = at once, Infinity = never. */
  keepAliveMs: number;
  /** The limit on the memory of all models; absent means none. */
  memory?: ModelMemory<M>;
  now?: () => number;
  onEvent?(event: 'loaded' | 'unloaded', key: string, tookMs: number): void;
}

export interface ModelMemory<M> {
  maxBytes: number;
  /** The bytes that a model is expected to need, before it is loaded. */
  expected(key: string): number;
  /** The bytes that a loaded model uses; 0 when it cannot tell. */
  used(model: M): number;
}

interface Resident<M> {
  key: string;
  loading: Promise<M>;
  /** Null until it is loaded. */
  model: M | null;
  /** What it counts against the limit on memory. */
  memoryBytes: number;
  leases: number;
  idleSince: number;
  timer: NodeJS.Timeout | undefined;
  /** True when the next lease of its key gets another one. It stays in memory until its last lease ends. */
  isEvicted: boolean;
  /** Resolves when its memory is released; null before it is unloaded. */
  closing: Promise<void> | null;
}

const MIB = 1024 * 1024;
/** Node turns a longer delay into 1 ms (https://nodejs.org/api/timers.html#settimeoutcallback-delay-args). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class ModelCache<M extends Closable> {
  readonly #options: CacheOptions<M>;
  readonly #now: () => number;
  readonly #maxBytes: number;
  /** All that are in memory, those included that are being loaded or closed. */
  readonly #residents = new Set<Resident<M>>();

  constructor(options: CacheOptions<M>) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#maxBytes = options.memory?.maxBytes ?? Number.POSITIVE_INFINITY;
  }

  /**
   * Resolves when the model is resident. Requests for a model that is being loaded share the load, and a load that
   * fails rejects all of them with its error. The lease ends once, however often it is disposed.
   * @throws GatewayError `model_too_large`; `out_of_memory` when the models in use leave no room
   */
  async lease(key: string): Promise<Lease<M>> {
    const resident = this.#current().find((r) => r.key === key) ?? this.#load(key);
    resident.leases += 1;
    clearTimeout(resident.timer);
    let released = false;
    try {
      return {
        model: await resident.loading,
        [Symbol.asyncDispose]: async () => {
          if (!released) {
            released = true;
            await this.#release(resident);
          }
        },
      };
    } catch (error) {
      resident.leases -= 1;
      throw error;
    }
  }

  /** False for a model that would not have room alone. */
  fits(key: string): boolean {
    return this.#expected(key) <= this.#maxBytes;
  }

  /** @throws GatewayError `model_too_large` for a model that would not have room alone */
  assertFits(model: string): void {
    if (this.fits(model)) return;
    const [neededMb, maxMb] = [Math.ceil(this.#expected(model) / MIB), Math.floor(this.#maxBytes / MIB)];
    throw new GatewayError('model_too_large', { model, neededMb, maxMb });
  }

  entries(): CacheEntry[] {
    return this.#current().map((r) => ({
      key: r.key,
      state: r.model === null ? 'loading' : 'resident',
      memoryBytes: r.memoryBytes,
      leases: r.leases,
      idleForMs: r.leases > 0 ? 0 : Math.round(this.#now() - r.idleSince),
    }));
  }

  /** Evicts one model, or all of them without a key; returns how many were evicted. */
  evict(key?: string): number {
    const chosen = this.#current().filter((r) => key === undefined || r.key === key);
    for (const resident of chosen) {
      resident.isEvicted = true;
      if (resident.leases === 0) void this.#unload(resident);
    }
    return chosen.length;
  }

  /** Unloads the model that was idle for the longest time, of those that qualify; false where there is none. */
  async unloadIdle(qualifies: (key: string) => boolean): Promise<boolean> {
    const idle = this.#longestIdle(({ key }) => qualifies(key));
    if (idle !== undefined) await this.#unload(idle);
    return idle !== undefined;
  }

  /** The number of evicted models that are still in memory because a request under way uses them. */
  lingering(): number {
    return [...this.#residents].filter(({ isEvicted, closing }) => isEvicted && closing === null).length;
  }

  /** Closes every model, leased ones too, and resolves when their memory is released. */
  async close(): Promise<void> {
    await Promise.all([...this.#residents].map((resident) => this.#unload(resident)));
  }

  /** The models that the next lease gets. */
  #current(): Resident<M>[] {
    return [...this.#residents].filter(({ isEvicted }) => !isEvicted);
  }

  #load(key: string): Resident<M> {
    this.assertFits(key);
    const { load, memory, onEvent } = this.#options;
    const startedAt = this.#now();
    const own = { key, model: null, memoryBytes: 0, leases: 0, idleSince: startedAt, timer: undefined };
    const state = { ...own, isEvicted: false, closing: null };
    const resident: Resident<M> = Object.assign(state, {
      loading: this.#reserve(state, this.#expected(key)).then(() => load(key)),
    });
    this.#residents.add(resident);
    resident.loading.then(
      (model) => {
        resident.model = model;
        resident.memoryBytes = memory?.used(model) || resident.memoryBytes;
        this.#reserve(resident, resident.memoryBytes).catch(() => undefined); // a model that turned out larger than expected is kept even if there is no room
        onEvent?.('loaded', key, this.#now() - startedAt);
      },
      // A failed load is forgotten, so that the next request tries again.
      () => this.#residents.delete(resident),
    );
    return resident;
  }

  async #release(resident: Resident<M>): Promise<void> {
    resident.leases -= 1;
    if (resident.leases > 0) return;
    resident.idleSince = this.#now();
    const { keepAliveMs } = this.#options;
    if (resident.isEvicted || keepAliveMs === 0) await this.#unload(resident);
    else this.#unloadAfter(resident, keepAliveMs);
  }

  #unloadAfter(resident: Resident<M>, ms: number): void {
    const next = Math.min(ms, LONGEST_TIMER_MS);
    resident.timer = setTimeout(() => {
      if (ms > next) this.#unloadAfter(resident, ms - next);
      else void this.#unload(resident);
    }, next).unref();
  }

  #unload(resident: Resident<M>): Promise<void> {
    resident.isEvicted = true;
    clearTimeout(resident.timer);
    const startedAt = this.#now();
    resident.closing ??= resident.loading
      .then((model) => model.close())
      .then(
        () => this.#options.onEvent?.('unloaded', resident.key, this.#now() - startedAt),
        () => undefined, // a model that never loaded has nothing to close
      )
      .finally(() => this.#residents.delete(resident));
    return resident.closing;
  }

  #longestIdle(qualifies: (resident: Resident<M>) => boolean): Resident<M> | undefined {
    const idle = this.#current().filter((r) => r.leases === 0 && r.model !== null && qualifies(r));
    return idle.sort((a, b) => a.idleSince - b.idleSince)[0];
  }

  #expected(key: string): number {
    return this.#options.memory?.expected(key) ?? 0;
  }

  /** Unloads idle models until there is room for these bytes, and counts them from then on. */
  async #reserve(share: Pick<Resident<M>, 'memoryBytes'>, bytes: number): Promise<void> {
    for (;;) {
      const others = [...this.#residents].filter((resident) => resident !== share);
      if (others.reduce((sum, { memoryBytes }) => sum + memoryBytes, bytes) <= this.#maxBytes) break;
      const idle = this.#longestIdle((resident) => resident !== share);
      const closing = others.flatMap((resident) => resident.closing ?? []);
      if (idle !== undefined) await this.#unload(idle);
      else if (closing.length > 0) await Promise.race(closing);
      else throw new GatewayError('out_of_memory', {});
    }
    share.memoryBytes = bytes;
  }
}
