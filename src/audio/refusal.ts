import { GatewayError } from '../errors.ts';

/** Why an uploaded file is refused; the `code` of the error envelope. All are 400. */
export type RefusalCode =
  | 'empty_file' // no bytes
  | 'unsupported_format' // not a container known here, or one that needs the ffmpeg this machine lacks
  | 'no_audio_stream' // a video, or an image, without sound
  | 'empty_audio' // a sound file of no samples
  | 'undecodable_audio'
  | 'audio_too_long';

/** `message` is shown to the client: no paths, nothing of what a decoder printed. */
export function refuseAudio(code: RefusalCode, message: string, cause?: unknown): GatewayError {
  return new GatewayError('malformed', message, { param: 'file', code, cause });
}
