/**
 * The models resident in memory. A request leases a model for as long as it uses it. A model without a lease is
 * closed after the idle time. An evicted model is closed as soon as its last lease ends, so that requests in flight
 * finish with the model they started with (contract 3, "ASR model cache").
 */

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
   */
  lease(key: string): Promise<Lease<M>>;
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
  now?: () => number;
  onEvent?(event: 'loaded' | 'unloaded', key: string, tookMs: number): void;
}

interface Resident<M> {
  key: string;
  loading: Promise<M>;
  model: M | null;
  leases: number;
  evicted: boolean;
  idleSince: number;
  timer: NodeJS.Timeout | null;
}

/** Node turns a longer delay into 1 ms (https://nodejs.org/api/timers.html#settimeoutcallback-delay-args). */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function createModelCache<M extends Closable>(options: CacheOptions<M>): ModelCache<M> {
  const now = options.now ?? (() => performance.now());
  const current = new Map<string, Resident<M>>();
  const lingering = new Set<Resident<M>>();
  const closing = new Set<Promise<void>>();

  function begin(key: string): Resident<M> {
    const startedAt = now();
    const resident: Resident<M> = {
      key,
      loading: options.load(key),
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
        options.onEvent?.('loaded', key, now() - startedAt);
      },
      // A failed load is forgotten, so that the next request tries again.
      () => forget(resident),
    );
    return resident;
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
      .then((model) => model.close())
      .then(
        () => options.onEvent?.('unloaded', resident.key, now() - startedAt),
        () => undefined, // a model that never loaded has nothing to close
      )
      .finally(() => closing.delete(done));
    closing.add(done);
    return done;
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
    lingering: () => lingering.size,
    async close() {
      for (const resident of [...current.values(), ...lingering]) void shut(resident);
      await Promise.all(closing);
    },
  };
}
