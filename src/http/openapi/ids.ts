/**
 * The names of operations (`operationId`), by which generated clients call them. So a name that was published stays.
 * Where OpenAI describes the same operation, the name is OpenAI's.
 */

/** By method and path. */
export const OPERATION_IDS: Readonly<Record<string, string>> = {
  'get /health': 'getHealth',
  'get /ready': 'getReadiness',
  'get /openapi.json': 'getDescription',
  'get /metrics': 'getMetrics',
  'get /v1/models': 'listModels',
  'get /v1/models/{id}': 'retrieveModel',
  'post /v1/audio/transcriptions': 'createTranscription',
  'get /v1/realtime': 'openLiveSession',
  'post /v1/realtime/client_secrets': 'createRealtimeClientSecret',
  'post /v1/realtime/transcription_sessions': 'createRealtimeTranscriptionSession',
  'post /v1/realtime/sessions': 'createRealtimeSession',
  'post /v1/audio/translations': 'createTranslation',
  'post /v1/audio/alignments': 'createAlignment',
  'post /asr': 'createAsrTranscription',
  'post /detect-language': 'detectLanguage',
  'post /v1/audio/speech': 'createSpeech',
  'post /v1/audio/speech/stream': 'createSpeechStream',
  'post /v1/audio/speech/batch': 'createSpeechBatch',
  'get /v1/audio/voices': 'listVoices',
  'post /v1/audio/voices': 'createVoice',
  'delete /v1/audio/voices/{name}': 'deleteVoice',
  'post /v1/chat/completions': 'createChatCompletion',
  'post /v1/completions': 'createCompletion',
  'post /v1/embeddings': 'createEmbedding',
  'post /v1/responses': 'createResponse',
  'get /v1/responses/{id}': 'getResponse',
  'delete /v1/responses/{id}': 'deleteResponse',
  'post /v1/responses/{id}/cancel': 'cancelResponse',
  'get /v1/responses/{id}/input_items': 'listInputItems',
  'post /admin/session': 'createSession',
  'delete /admin/session': 'deleteSession',
  'get /admin': 'getDashboard',
  'get /admin/api/metrics': 'getTraffic',
  'get /admin/api/series': 'getSeries',
  'get /admin/api/crashes': 'listCrashes',
  'post /admin/api/observability/toggle': 'toggleObservability',
  'post /admin/api/observability/clear-payload': 'clearCaptures',
  'post /admin/api/reset-asr-state': 'unloadModels',
  'post /admin/api/models/{id}/pull': 'pullModel',
  'post /admin/api/models/{id}/load': 'loadModel',
  'post /admin/api/models/{id}/unload': 'unloadModel',
  'post /admin/api/slot/stop': 'stopSlotHolder',
  'get /admin/captures/{requestId}': 'getCapture',
  'get /admin/captures/{requestId}/req.bin': 'getCapturedRequest',
  'get /admin/captures/{requestId}/resp.bin': 'getCapturedAnswer',
  'post /admin/captures/{requestId}/replay': 'replayCapture',
};

/** One that is not in the table is named after its method and path: `get /v1/slot/{id}` is `getSlotById`. */
export function operationId(method: string, path: string): string {
  const named = OPERATION_IDS[`${method} ${path}`];
  if (named !== undefined) return named;
  const words =
    path
      .replace(/^\/v1\//, '')
      .replaceAll('{', 'by-')
      .match(/[A-Za-z0-9]+/g) ?? [];
  return method + words.map(capitalized).join('');
}

const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
