/** The engine for a machine on which the addon cannot be loaded. It runs no model family, and every call fails. */
import { GatewayError } from '../errors.ts';
import type { NativeEngine } from './types.ts';

/** An engine whose calls all reject with GatewayError `backend_unavailable`. */
export function missingEngine(): NativeEngine {
  const refuse = async (): Promise<never> => {
    throw new GatewayError('backend_unavailable', { provider: 'transcription' });
  };
  return {
    info: {
      whisperVersion: '',
      ggmlVersion: '',
      devices: [],
      cpuLevel: '',
      cpuFeatures: [],
      cudaArchitectures: '',
      families: [],
      gpuLibraries: [],
    },
    gpuLoadErrors: () => ({}),
    setLogger: () => undefined,
    loadModel: refuse,
    loadVoiceActivity: refuse,
    loadSpeakers: refuse,
    loadTurnDetector: refuse,
    openAudio: refuse,
    quantize: refuse,
  };
}
