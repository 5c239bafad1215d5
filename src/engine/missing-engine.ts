/** Stands in for the addon where it cannot be loaded: it can run no family, and every call says so. */
import { GatewayError } from '../errors.ts';
import type { NativeEngine } from './types.ts';

/** Each call rejects with GatewayError `backend_unavailable`. */
export function missingEngine(): NativeEngine {
  const refuse = async (): Promise<never> => {
    throw new GatewayError('backend_unavailable', { provider: 'transcription' });
  };
  return {
    info: {
      whisperVersion: '',
      ggmlVersion: '',
      devices: [],
      cpuFeatures: [],
      families: [],
      cudaLibrary: false,
    },
    setLogger: () => undefined,
    loadModel: refuse,
    loadVoiceActivity: refuse,
    openAudio: refuse,
    quantize: refuse,
  };
}
