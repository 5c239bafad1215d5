/**
 * A model on a GPU that moves to the CPU when the GPU fails or has no memory left. That may happen while the model
 * loads, or in the middle of a chunk, which is then recognized again from its start, as are the chunks of the other
 * lanes. A cancelled call and an invalid argument do not count as failures of the GPU.
 *
 * The GPU may have been full only for a while, so it is tried again later, a few times, while the CPU goes on.
 */
import {
  type DecodedSegment,
  type JobHooks,
  type Lane,
  NativeError,
  type TranscriptionModel,
} from './types.ts';

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

/**
 * Loads the model on the GPU, or on the CPU when that fails.
 * @throws NativeError when the CPU fails too
 */
export async function loadWithFallback(options: GpuFallbackOptions): Promise<TranscriptionModel> {
  const { now = () => performance.now() } = options;
  let moving: Promise<void> | undefined;
  let returning: Promise<void> | undefined;
  let isClosing = false;
  let retries = 0;
  let retryAt = Number.POSITIVE_INFINITY;
  /** The model on the CPU that was left for the GPU, and still computes. */
  let left: Placed | undefined;
  let placed = await loadOnGpu().catch(loadOnCpu);

  async function loadOnGpu(): Promise<Placed> {
    return { model: await options.load(options.gpu), isGpu: true, calls: 0 };
  }

  /** @throws `error` itself when it is not a failure of the GPU */
  async function loadOnCpu(error: unknown): Promise<Placed> {
    if (!isGpuFailure(error)) throw error;
    const model = await options.load('cpu');
    options.onFallback(error);
    retryLater();
    return { model, isGpu: false, calls: 0 };
  }

  function retryLater(): void {
    retryAt = retries < MOST_RETRIES ? now() + FIRST_RETRY_MS * 2 ** retries : Number.POSITIVE_INFINITY;
  }

  /** What the CPU computes meanwhile is not cut off. */
  async function goBack(): Promise<void> {
    retries += 1;
    retryAt = Number.POSITIVE_INFINITY;
    try {
      const next = await loadOnGpu();
      left = placed;
      placed = next;
      options.onReturn();
      await closeLeft();
    } catch {
      retryLater();
    }
  }

  async function closeLeft(): Promise<void> {
    if (left === undefined || left.calls > 0) return;
    const { model } = left;
    left = undefined;
    await model.close();
  }

  /** Closing the model ends what its other lanes compute, so that they come here as well. */
  async function move(error: unknown): Promise<void> {
    const { model } = placed;
    placed = await loadOnCpu(error);
    await model.close();
  }

  async function run<T>(index: number, call: (lane: Lane, isGpu: boolean) => Promise<T>): Promise<T> {
    if (now() >= retryAt && !placed.isGpu && left === undefined && !isClosing)
      returning = goBack().finally(() => {
        returning = undefined;
      });
    const used = placed;
    const callOn = async (on: Placed) => {
      on.calls += 1;
      try {
        return await call(await on.model.lane(index % on.model.info.lanes), on.isGpu);
      } finally {
        on.calls -= 1;
        await closeLeft();
      }
    };
    try {
      return await callOn(used);
    } catch (error) {
      // The model is being closed. A model that is loaded on the CPU now would stay open.
      if (isClosing) throw error;
      const isLeaving = moving !== undefined || placed !== used;
      if (!used.isGpu || !(isGpuFailure(error) || (isLeaving && isClosed(error)))) throw error;
      if (placed === used) {
        moving ??= move(error).finally(() => {
          moving = undefined; // a CPU that fails too may have memory later
        });
      }
      await moving;
      return await callOn(placed);
    }
  }

  /** What moves with the model; the CPU may have fewer lanes. */
  const lane = (index: number): Lane => ({
    get info() {
      return placed.model.info;
    },
    transcribe: (samples, decoding, hooks = {}) =>
      run(index, (current, isGpu) =>
        isGpu
          ? transcribeWhole(current, samples, decoding, hooks)
          : current.transcribe(samples, decoding, hooks),
      ),
    detectLanguage: (samples, detection, hooks) =>
      run(index, (current) => current.detectLanguage(samples, detection, hooks)),
  });
  const { transcribe, detectLanguage } = lane(0);
  const movable: TranscriptionModel = {
    get info() {
      return placed.model.info;
    },
    transcribe,
    detectLanguage,
    lane: async (index) => (index === 0 ? movable : lane(index)),
    close: async () => {
      isClosing = true;
      await Promise.allSettled([moving, returning]);
      await Promise.all([placed.model.close(), left?.model.close()]);
    },
  };
  return movable;
}

/** Reports the segments only when the chunk is complete, so that a second attempt cannot report them twice. */
async function transcribeWhole(
  lane: Lane,
  samples: Float32Array,
  decoding: Parameters<Lane['transcribe']>[1],
  { onSegment, ...hooks }: JobHooks,
): Promise<DecodedSegment[]> {
  const segments = await lane.transcribe(samples, decoding, hooks);
  for (const segment of segments) onSegment?.(segment);
  return segments;
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
