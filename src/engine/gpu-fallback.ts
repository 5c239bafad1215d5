/**
 * A model on a GPU that moves to the CPU when the GPU fails or has no memory left. That may happen while the model
 * loads, or in the middle of a chunk, which is then recognized again from its start. A cancelled call and an invalid
 * argument do not count as failures of the GPU.
 */
import { type DecodedSegment, type JobHooks, NativeError, type TranscriptionModel } from './types.ts';

export interface GpuFallbackOptions {
  /** `cuda:<n>` or `vulkan:<n>`, as `LoadOptions.device` takes it. */
  gpu: string;
  load(device: string): Promise<TranscriptionModel>;
  /** Called when the model has moved to the CPU, where it stays. */
  onFallback(error: NativeError): void;
}

/**
 * Loads the model on the GPU, or on the CPU when that fails. The model returned has one lane while it is on the GPU.
 * @throws NativeError when the CPU fails too
 */
export async function loadWithFallback(options: GpuFallbackOptions): Promise<TranscriptionModel> {
  let onGpu = true;
  let model = await options.load(options.gpu).catch(moveToCpu);

  /** Loads the model on the CPU. @throws `error` itself when it is not a failure of the GPU */
  async function moveToCpu(error: unknown): Promise<TranscriptionModel> {
    if (!onGpu || !isGpuFailure(error)) throw error;
    const onCpu = await options.load('cpu');
    onGpu = false;
    options.onFallback(error);
    return onCpu;
  }

  async function run<T>(call: (model: TranscriptionModel) => Promise<T>): Promise<T> {
    try {
      return await call(model);
    } catch (error) {
      const failed = model;
      model = await moveToCpu(error);
      await failed.close();
      return await call(model);
    }
  }

  const movable: TranscriptionModel = {
    get info() {
      return model.info;
    },
    transcribe: (samples, decoding, hooks = {}) =>
      run((current) =>
        onGpu
          ? transcribeWhole(current, samples, decoding, hooks)
          : current.transcribe(samples, decoding, hooks),
      ),
    detectLanguage: (samples, detection, hooks) =>
      run((current) => current.detectLanguage(samples, detection, hooks)),
    lane: async (index) => (onGpu ? movable : model.lane(index)),
    close: () => model.close(),
  };
  return movable;
}

/** Reports the segments only when the chunk is complete, so that a second attempt cannot report them twice. */
async function transcribeWhole(
  model: TranscriptionModel,
  samples: Float32Array,
  decoding: Parameters<TranscriptionModel['transcribe']>[1],
  { onSegment, ...hooks }: JobHooks,
): Promise<DecodedSegment[]> {
  const segments = await model.transcribe(samples, decoding, hooks);
  for (const segment of segments) onSegment?.(segment);
  return segments;
}

function isGpuFailure(error: unknown): error is NativeError {
  return (
    error instanceof NativeError &&
    (error.code === 'out_of_memory' || error.code === 'inference_failed' || error.code === 'load_failed')
  );
}
