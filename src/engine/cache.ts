/**
 * The models resident in memory. A request leases a model for as long as it uses it. A model without a lease is
 * unloaded after the idle time (idle eviction). An evicted model is unloaded as soon as its last lease ends, so that
 * requests in flight finish with the model they started with (contract 3, "ASR model cache"). The memory of all models
 * has a limit: for room, the least recently used (LRU) idle model is unloaded first, and where only models in use are
 * left, the request is out of memory.
 */
import { setTimeout as sleep } from 'node:timers/promises';
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

export interface ModelCache<M extends Closable> {
  /**
   * Resolves when the model is resident. Requests for a model that is being loaded share the load, and a load that
   * fails rejects all of them with its error.
   * @throws GatewayError `model_too_large`; `out_of_memory` when the models in use leave no room
   */
  lease(key: string): Promise<Lease<M>>;
  /** False for a model that would not have room alone. */
  fits(key: string): boolean;
  /** @throws GatewayError `model_too_large` for a model that would not have room alone */
  assertFits(key: string): void;
  entries(): CacheEntry[];
  /** Evicts one model, or all of them without a key; returns how many were evicted. */
  evict(key?: string): number;
  /** Unloads the model that was idle for the longest time, of those that qualify; false where there is none. */
  unloadIdle(qualifies: (key: string) => boolean): Promise<boolean>;
  /** The number of evicted models that are still in memory because a request under way uses them. */
  lingering(): number;
  /** Closes every model, leased ones too, and resolves when their memory is released. */
  close(): Promise<void>;
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
  memory: MemoryShare;
  loading: Promise<M>;
  model: M | null;
  leases: number;
  evicted: boolean;
  idleSince: number;
  timer: NodeJS.Timeout | null;
}

/** What a model counts against the limit on memory. */
interface MemoryShare {
  bytes: number;
}

const MIB = 1024 * 1024;
/** A model that cannot be closed is closed again after pauses, each twice as long as the one before. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 10_000;
/** Node turns a longer delay into 1 ms (https://nodejs.org/api/timers.html#settimeoutcallback-delay-args). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function createModelCache<M extends Closable>(options: CacheOptions<M>): ModelCache<M> {
  const { memory, now = () => performance.now() } = options;
  const residents = createResidents(options, now);
  const limit = createMemoryLimit(memory, residents);
  const { current, lingering, closing } = residents;

  function load(key: string): Resident<M> {
    const startedAt = now();
    const bytes = limit.expected(key);
    limit.assertFits(key, bytes);
    const share: MemoryShare = { bytes: 0 };
    const resident: Resident<M> = {
      key,
      memory: share,
      loading: limit.reserve(share, bytes).then(() => options.load(key)),
      model: null,
      leases: 0,
      evicted: false,
      idleSince: startedAt,
      timer: null,
    };
    current.set(key, resident);
    resident.loading.then(
      (model) => {
        resident.model = model;
        share.bytes = memory?.used(model) || share.bytes;
        limit.reserve(share, share.bytes).catch(() => undefined); // a model that turned out larger than expected is kept even if there is no room
        options.onEvent?.('loaded', key, now() - startedAt);
      },
      // A failed load is forgotten, so that the next request tries again.
      () => residents.forget(resident),
    );
    return resident;
  }

  return {
    lease: async (key) => leaseOf(current.get(key) ?? load(key), residents.release),
    entries: () =>
      [...current.values()].map((r) => ({
        key: r.key,
        state: r.model === null ? 'loading' : 'resident',
        memoryBytes: r.memory.bytes,
        leases: r.leases,
        idleForMs: r.leases > 0 ? 0 : Math.round(now() - r.idleSince),
      })),
    evict(key) {
      const chosen = [...current.values()].filter((r) => key === undefined || r.key === key);
      for (const resident of chosen) residents.evict(resident);
      return chosen.length;
    },
    fits: limit.fits,
    assertFits: (key) => limit.assertFits(key),
    async unloadIdle(qualifies) {
      const idle = residents.longestIdle(({ key }) => qualifies(key));
      if (idle !== undefined) await residents.unload(idle);
      return idle !== undefined;
    },
    lingering: () => lingering.size,
    async close() {
      for (const resident of [...current.values(), ...lingering]) void residents.unload(resident);
      await Promise.all(closing.keys());
    },
  };
}

/** The lease ends once, however often it is disposed. A load that fails ends it as well. */
async function leaseOf<M>(
  resident: Resident<M>,
  release: (resident: Resident<M>) => Promise<void>,
): Promise<Lease<M>> {
  resident.leases += 1;
  if (resident.timer !== null) clearTimeout(resident.timer);
  resident.timer = null;
  let released = false;
  try {
    const model = await resident.loading;
    return {
      model,
      async [Symbol.asyncDispose]() {
        if (released) return;
        released = true;
        await release(resident);
      },
    };
  } catch (error) {
    resident.leases -= 1;
    throw error;
  }
}

type Residents<M extends Closable> = ReturnType<typeof createResidents<M>>;

/** The models that are in memory, and how they leave it. */
function createResidents<M extends Closable>(options: CacheOptions<M>, now: () => number) {
  /** The models that the next lease gets, by their keys. */
  const current = new Map<string, Resident<M>>();
  /** Evicted models that a request still uses. */
  const lingering = new Set<Resident<M>>();
  const closing = new Map<Promise<void>, Resident<M>>();

  function forget(resident: Resident<M>): void {
    lingering.delete(resident);
    resident.evicted = true;
    if (resident.timer !== null) clearTimeout(resident.timer);
    if (current.get(resident.key) === resident) current.delete(resident.key);
  }

  function unload(resident: Resident<M>): Promise<void> {
    forget(resident);
    const startedAt = now();
    const done = resident.loading
      .then(closeWithRetries)
      .then(
        () => options.onEvent?.('unloaded', resident.key, now() - startedAt),
        () => undefined, // a model that never loaded has nothing to close
      )
      .finally(() => closing.delete(done));
    closing.set(done, resident);
    return done;
  }

  function unloadAfter(resident: Resident<M>, ms: number): void {
    const next = Math.min(ms, LONGEST_TIMER_MS);
    resident.timer = setTimeout(() => {
      if (ms > next) unloadAfter(resident, ms - next);
      else void unload(resident);
    }, next);
    resident.timer.unref();
  }

  async function release(resident: Resident<M>): Promise<void> {
    resident.leases -= 1;
    if (resident.leases > 0) return;
    resident.idleSince = now();
    if (resident.evicted || options.keepAliveMs === 0) return unload(resident);
    unloadAfter(resident, options.keepAliveMs);
  }

  function evict(resident: Resident<M>): void {
    if (resident.leases > 0) {
      forget(resident);
      lingering.add(resident);
    } else void unload(resident);
  }

  function longestIdle(qualifies: (resident: Resident<M>) => boolean): Resident<M> | undefined {
    const idle = [...current.values()].filter((r) => r.leases === 0 && r.model !== null && qualifies(r));
    return idle.sort((a, b) => a.idleSince - b.idleSince)[0];
  }

  return { current, lingering, closing, release, evict, unload, forget, longestIdle };
}

/** Closing can fail for lack of memory. It is tried again, because the model itself holds far more memory. */
async function closeWithRetries(model: Closable): Promise<void> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
    try {
      return await model.close();
    } catch (error) {
      if (pauseMs > LONGEST_PAUSE_MS) throw error;
      await sleep(pauseMs);
    }
  }
}

function createMemoryLimit<M extends Closable>(memory: ModelMemory<M> | undefined, residents: Residents<M>) {
  const { current, lingering, closing, unload, longestIdle } = residents;
  const maxBytes = memory?.maxBytes ?? Number.POSITIVE_INFINITY;
  const expected = (key: string) => memory?.expected(key) ?? 0;

  function assertFits(model: string, bytes = expected(model)): void {
    if (bytes <= maxBytes) return;
    const [neededMb, maxMb] = [Math.ceil(bytes / MIB), Math.floor(maxBytes / MIB)];
    throw new GatewayError('model_too_large', { model, neededMb, maxMb });
  }

  /** Unloads idle models until there is room for these bytes, and counts them from then on. */
  async function reserve(share: MemoryShare, bytes: number): Promise<void> {
    while (bytesBeside(share) + bytes > maxBytes) {
      const idle = longestIdle(({ memory }) => memory !== share);
      if (idle !== undefined) await unload(idle);
      else if (closing.size > 0) await Promise.race(closing.keys());
      else throw new GatewayError('out_of_memory', {});
    }
    share.bytes = bytes;
  }

  function bytesBeside(share: MemoryShare): number {
    const all = new Set([...current.values(), ...lingering, ...closing.values()].map((r) => r.memory));
    all.delete(share);
    return [...all].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  return { expected, fits: (key: string) => expected(key) <= maxBytes, assertFits, reserve };
}
