/**
 * A model on a GPU that moves to the CPU when the GPU fails or has no memory left. That may happen while the model
 * loads, or in the middle of a chunk, which is then recognized again from its start, as are the chunks of the other
 * lanes. A cancelled call and an invalid argument do not count as failures of the GPU.
 *
 * The GPU may have been full only for a while, so it is tried again later, a few times, while the CPU goes on.
 */
import { type Lane, NativeError, type TranscriptionModel } from './types.ts';

export interface GpuFallbackOptions {
  /** `cuda:<n>` or `vulkan:<n>`, as `LoadOptions.device` takes it. */
  gpu: string;
  load(device: string): Promise<TranscriptionModel>;
  /** Called when the model has moved to the CPU. */
  onFallback(error: NativeError): void;
  /** Called when the model has moved back to the GPU. */
  onReturn(): void;
  now?: () => number;
}

interface Placed {
  model: TranscriptionModel;
  isGpu: boolean;
  /** The number of its calls under way. */
  calls: number;
}

/** The time until a GPU is tried again, which doubles each time, ms. */
const FIRST_RETRY_MS = 60_000;
const MOST_RETRIES = 5;

/** A model that a GPU had no memory for, or was lost with. */
export interface OnCpu {
  model: string;
  why: string;
  since: Date;
}

/**
 * Loads the model on the GPU, or on the CPU when that fails.
 * @throws NativeError when the CPU fails too
 */
export async function loadWithFallback(options: GpuFallbackOptions): Promise<TranscriptionModel> {
  const movable = new MovableModel(options);
  await movable.load();
  const first = movable.lane(0);
  const { transcribe, detectLanguage } = first;
  const model: TranscriptionModel = {
    get info() {
      return first.info;
    },
    transcribe,
    detectLanguage,
    lane: async (index) => (index === 0 ? model : movable.lane(index)),
    close: () => movable.close(),
  };
  return model;
}

class MovableModel {
  readonly #options: GpuFallbackOptions;
  readonly #now: () => number;
  #current: Placed | undefined;
  /** The model on the CPU that was left for the GPU, and still computes. */
  #left: Placed | undefined;
  #moving: Promise<void> | undefined;
  #returning: Promise<void> | undefined;
  #isClosing = false;
  #retries = 0;
  #retryAt = Number.POSITIVE_INFINITY;

  constructor(options: GpuFallbackOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  async load(): Promise<void> {
    this.#current = await this.#loadOnGpu().catch((error) => this.#loadOnCpu(error));
  }

  get #placed(): Placed {
    if (this.#current === undefined) throw new Error('The model is not loaded');
    return this.#current;
  }

  async #loadOnGpu(): Promise<Placed> {
    return { model: await this.#options.load(this.#options.gpu), isGpu: true, calls: 0 };
  }

  /** @throws `error` itself when it is not a failure of the GPU */
  async #loadOnCpu(error: unknown): Promise<Placed> {
    if (!isGpuFailure(error)) throw error;
    const model = await this.#options.load('cpu');
    this.#options.onFallback(error);
    this.#retryLater();
    return { model, isGpu: false, calls: 0 };
  }

  /** Closing the model ends what its other lanes compute, so that they come here as well. */
  async #move(error: unknown): Promise<void> {
    const { model } = this.#placed;
    this.#current = await this.#loadOnCpu(error);
    await model.close();
  }

  #retryLater(): void {
    const isOver = this.#retries >= MOST_RETRIES;
    this.#retryAt = isOver ? Number.POSITIVE_INFINITY : this.#now() + FIRST_RETRY_MS * 2 ** this.#retries;
  }

  /** Loads the model on the GPU again. What the CPU computes meanwhile is not cut off. */
  async #goBack(): Promise<void> {
    this.#retries += 1;
    this.#retryAt = Number.POSITIVE_INFINITY;
    try {
      const next = await this.#loadOnGpu();
      this.#left = this.#current;
      this.#current = next;
      this.#options.onReturn();
      await this.#closeLeft();
    } catch {
      this.#retryLater();
    }
  }

  async #closeLeft(): Promise<void> {
    if (this.#left === undefined || this.#left.calls > 0) return;
    const { model } = this.#left;
    this.#left = undefined;
    await model.close();
  }

  #goBackInTime(): void {
    const isDue = this.#now() >= this.#retryAt && !this.#placed.isGpu && this.#left === undefined;
    if (!isDue || this.#isClosing) return;
    this.#returning = this.#goBack().finally(() => {
      this.#returning = undefined;
    });
  }

  async #run<T>(index: number, call: (lane: Lane) => Promise<T>): Promise<T> {
    this.#goBackInTime();
    const used = this.#placed;
    const callOn = async (on: Placed) => {
      on.calls += 1;
      try {
        return await call(await on.model.lane(index % on.model.info.lanes));
      } finally {
        on.calls -= 1;
        await this.#closeLeft();
      }
    };
    try {
      return await callOn(used);
    } catch (error) {
      // The model is being closed. A model that is loaded on the CPU now would stay open.
      if (this.#isClosing) throw error;
      const isLeaving = this.#moving !== undefined || this.#placed !== used;
      if (!used.isGpu || !(isGpuFailure(error) || (isLeaving && isClosed(error)))) throw error;
      if (this.#placed === used) {
        this.#moving ??= this.#move(error).finally(() => {
          this.#moving = undefined; // a CPU that fails too may have memory later
        });
      }
      await this.#moving;
      return await callOn(this.#placed);
    }
  }

  /** What moves with the model; the CPU may have fewer lanes. */
  lane(index: number): Lane {
    const info = () => this.#placed.model.info;
    return {
      get info() {
        return info();
      },
      transcribe: (samples, decoding, options) =>
        this.#run(index, (current) => current.transcribe(samples, decoding, options)),
      detectLanguage: (samples, detection, options) =>
        this.#run(index, (current) => current.detectLanguage(samples, detection, options)),
    };
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled([this.#moving, this.#returning]);
    await Promise.all([this.#placed.model.close(), this.#left?.model.close()]);
  }
}

function isGpuFailure(error: unknown): error is NativeError {
  return (
    error instanceof NativeError &&
    (error.code === 'out_of_memory' || error.code === 'inference_failed' || error.code === 'load_failed')
  );
}

function isClosed(error: unknown): boolean {
  return error instanceof NativeError && error.code === 'closed';
}
