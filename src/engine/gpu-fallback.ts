/**
 * A model on a GPU that moves to the CPU when the GPU has no memory left or fails: while loading, or in the middle
 * of a chunk, which is then recognized again from its start. What is cancelled or asked wrongly is not a failure of
 * the GPU.
 */
import { type DecodedSegment, type JobHooks, NativeError, type TranscriptionModel } from './types.ts';

export interface GpuFallbackOptions {
  /** As `LoadOptions.device` takes it. */
  gpu: string;
  load(device: string): Promise<TranscriptionModel>;
  /** The model runs on the CPU from now on. */
  onFallback(error: NativeError): void;
}

export async function loadWithFallback(options: GpuFallbackOptions): Promise<TranscriptionModel> {
  let onGpu = true;
  let model = await options.load(options.gpu).catch(moveToCpu);

  /** The model on the CPU. @throws the error itself when it is not the GPU's */
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

/** Tells the segments only when the chunk is done, so that a second attempt does not tell them twice. */
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
