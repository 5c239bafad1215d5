/** Holds the gateway and faster-whisper to the same instructions, so that one machine shows what older ones have. */

/** Names of a level in the settings of CTranslate2 (its docs/environment_variables.md), oneDNN and MKL. */
const PEER_NAMES = {
  avx2: { ctranslate2: 'AVX2', oneDnn: 'AVX2', mkl: 'AVX2' },
  avx2_vnni: { ctranslate2: 'AVX2', oneDnn: 'AVX2_VNNI', mkl: 'AVX2' },
  avx512: { ctranslate2: 'AVX512', oneDnn: 'AVX512_CORE', mkl: 'AVX512' },
  avx512_vnni: { ctranslate2: 'AVX512', oneDnn: 'AVX512_CORE_VNNI', mkl: 'AVX512' },
  avx512_bf16: { ctranslate2: 'AVX512', oneDnn: 'AVX512_CORE_BF16', mkl: 'AVX512' },
} as const;

export type CpuLevel = keyof typeof PEER_NAMES;

export const CPU_LEVELS = Object.keys(PEER_NAMES) as CpuLevel[];

/** The others use what they were compiled for, and cannot be told to use less. */
export function canBeLimited(peer: string): boolean {
  return peer.startsWith('voxgate') || peer.startsWith('faster-whisper');
}

/** Gives the environment of the processes that may use this level and none above it. */
export function limitedTo(level: CpuLevel): Record<string, string> {
  const { ctranslate2, oneDnn, mkl } = PEER_NAMES[level];
  return {
    SVC_CPU: level,
    CT2_FORCE_CPU_ISA: ctranslate2,
    ONEDNN_MAX_CPU_ISA: oneDnn,
    MKL_ENABLE_INSTRUCTIONS: mkl,
  };
}
