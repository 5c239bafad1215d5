/**
 * The models resident in memory. A request leases a model for as long as it uses it. A model without a lease is
 * closed after the idle time. An evicted model is closed as soon as its last lease ends, so that requests in flight
 * finish with the model they started with (contract 3, "ASR model cache"). The memory of all models has a limit, for
 * which the model that was not used for the longest time is closed first.
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
  /** The number of evicted models that are still in memory because a request under way uses them. */
  lingering(): number;
  /** Closes every model, leased ones too, and resolves when their memory is released. */
  close(): Promise<void>;
}

export interface CacheOptions<M> {
  load(key: string): Promise<M>;
  /** Idle milliseconds before a model is closed; 0 = at once, Infinity = never. */
  keepAliveMs: number;
  /** The limit on the memory of all models; absent means none. */
  memory?: ModelMemory<M>;
  now?: () => number;
  onEvent?(event: 'loaded' | 'unloaded', key: string, tookMs: number): void;
}

export interface ModelMemory<M> {
  maxBytes: number;
  /** What a model is expected to take before it is loaded. */
  expected(key: string): number;
  /** What a loaded model takes; 0 when it cannot tell. */
  taken(model: M): number;
}

interface Resident<M> {
  key: string;
  memory: { bytes: number };
  loading: Promise<M>;
  model: M | null;
  leases: number;
  evicted: boolean;
  idleSince: number;
  timer: NodeJS.Timeout | null;
}

const MIB = 1024 * 1024;
/** A model that cannot be closed is closed again after pauses, each twice as long as the one before. */
const FIRST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 10_000;
/** Node turns a longer delay into 1 ms (https://nodejs.org/api/timers.html#settimeoutcallback-delay-args). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function createModelCache<M extends Closable>(options: CacheOptions<M>): ModelCache<M> {
  const now = options.now ?? (() => performance.now());
  const current = new Map<string, Resident<M>>();
  const lingering = new Set<Resident<M>>();
  const closing = new Map<Promise<void>, Resident<M>>();
  const { memory } = options;
  const maxBytes = memory?.maxBytes ?? Number.POSITIVE_INFINITY;
  const expected = (key: string) => memory?.expected(key) ?? 0;

  function begin(key: string): Resident<M> {
    const startedAt = now();
    const bytes = expected(key);
    refuseTooLarge(key, bytes);
    const held = { bytes: 0 };
    const resident: Resident<M> = {
      key,
      memory: held,
      loading: makeRoom(held, bytes).then(() => options.load(key)),
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
        held.bytes = memory?.taken(model) || held.bytes;
        makeRoom(held, held.bytes).catch(() => undefined); // if there is no room for the rest, it is kept all the same
        options.onEvent?.('loaded', key, now() - startedAt);
      },
      // A failed load is forgotten, so that the next request tries again.
      () => forget(resident),
    );
    return resident;
  }

  /** Closes idle models until there is room for these bytes, and counts them from then on. */
  async function makeRoom(held: { bytes: number }, bytes: number): Promise<void> {
    while (bytesBeside(held) + bytes > maxBytes) {
      const idle = [...current.values()].filter(
        (r) => r.memory !== held && r.leases === 0 && r.model !== null,
      );
      const [oldest] = idle.sort((a, b) => a.idleSince - b.idleSince);
      if (oldest !== undefined) await shut(oldest);
      else if (closing.size > 0) await Promise.race(closing.keys());
      else throw new GatewayError('out_of_memory', {});
    }
    held.bytes = bytes;
  }

  function bytesBeside(held: { bytes: number }): number {
    const all = new Set([...current.values(), ...lingering, ...closing.values()].map((r) => r.memory));
    all.delete(held);
    return [...all].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  function refuseTooLarge(model: string, bytes: number): void {
    if (bytes <= maxBytes) return;
    const [neededMb, maxMb] = [Math.ceil(bytes / MIB), Math.floor(maxBytes / MIB)];
    throw new GatewayError('model_too_large', { model, neededMb, maxMb });
  }

  function forget(resident: Resident<M>): void {
    lingering.delete(resident);
    resident.evicted = true;
    if (resident.timer !== null) clearTimeout(resident.timer);
    if (current.get(resident.key) === resident) current.delete(resident.key);
  }

  function shut(resident: Resident<M>): Promise<void> {
    forget(resident);
    const startedAt = now();
    const done = resident.loading
      .then(close)
      .then(
        () => options.onEvent?.('unloaded', resident.key, now() - startedAt),
        () => undefined, // a model that never loaded has nothing to close
      )
      .finally(() => closing.delete(done));
    closing.set(done, resident);
    return done;
  }

  /** Where there is no memory for the call, the model must not stay for that: it holds much more. */
  async function close(model: M): Promise<void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      try {
        return await model.close();
      } catch (error) {
        if (pauseMs > LONGEST_PAUSE_MS) throw error;
        await sleep(pauseMs);
      }
    }
  }

  async function release(resident: Resident<M>): Promise<void> {
    resident.leases -= 1;
    if (resident.leases > 0) return;
    resident.idleSince = now();
    if (resident.evicted || options.keepAliveMs === 0) return shut(resident);
    shutAfter(resident, options.keepAliveMs);
  }

  function shutAfter(resident: Resident<M>, ms: number): void {
    const next = Math.min(ms, LONGEST_TIMER_MS);
    resident.timer = setTimeout(() => {
      if (ms > next) shutAfter(resident, ms - next);
      else void shut(resident);
    }, next);
    resident.timer.unref();
  }

  return {
    async lease(key) {
      const resident = current.get(key) ?? begin(key);
      resident.leases += 1;
      if (resident.timer !== null) clearTimeout(resident.timer);
      resident.timer = null;
      let released = false;
      const once = async () => {
        if (released) return;
        released = true;
        await release(resident);
      };
      try {
        return { model: await resident.loading, [Symbol.asyncDispose]: once };
      } catch (error) {
        released = true;
        resident.leases -= 1;
        throw error;
      }
    },
    entries: () =>
      [...current.values()].map((r) => ({
        key: r.key,
        state: r.model === null ? 'loading' : 'resident',
        leases: r.leases,
        idleForMs: r.leases > 0 ? 0 : Math.round(now() - r.idleSince),
      })),
    evict(key) {
      const chosen = [...current.values()].filter((r) => key === undefined || r.key === key);
      for (const resident of chosen) {
        if (resident.leases === 0) void shut(resident);
        else {
          forget(resident);
          lingering.add(resident);
        }
      }
      return chosen.length;
    },
    fits: (key) => expected(key) <= maxBytes,
    assertFits: (key) => refuseTooLarge(key, expected(key)),
    lingering: () => lingering.size,
    async close() {
      for (const resident of [...current.values(), ...lingering]) void shut(resident);
      await Promise.all(closing.keys());
    },
  };
}
