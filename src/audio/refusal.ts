/** Why an uploaded file is refused, each a 400 of the field `file`. */
import { GatewayError } from '../errors.ts';

/** Reasons that need no more words. */
type PlainRefusal = 'empty_file' | 'no_audio_stream' | 'empty_audio';
/** Reasons that say why. */
type ExplainedRefusal = 'unsupported_format' | 'undecodable_audio';

export function refuseAudio(code: PlainRefusal): GatewayError {
  return new GatewayError(code, {}, { param: 'file' });
}

/** @param why shown to the client: no paths, nothing of what a decoder printed */
export function refuseDecoding(code: ExplainedRefusal, why: string, cause?: unknown): GatewayError {
  return new GatewayError(code, { why }, { param: 'file', cause });
}

export function refuseLength(maxAudioSec: number): GatewayError {
  return new GatewayError('audio_too_long', { maxSec: maxAudioSec }, { param: 'file' });
}
