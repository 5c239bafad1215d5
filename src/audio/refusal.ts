/** The errors that refuse an uploaded file. Each is a 400 with `param` "file", but for a wrong number of channels. */
import { GatewayError, invalidValue } from '../errors.ts';
import type { DecoderLimits } from './decoder.ts';

/** Codes whose sentence says everything. */
type PlainRefusal = 'empty_file' | 'no_audio_stream' | 'empty_audio' | 'repeated_audio';
/** Codes whose sentence has a blank for the reason. */
type ExplainedRefusal = 'unsupported_format' | 'undecodable_audio';

export function refuseAudio(code: PlainRefusal): GatewayError {
  return new GatewayError(code, {}, { param: 'file' });
}

/** @param why is shown to the client, so it must hold no path and nothing that a decoder printed */
export function refuseDecoding(code: ExplainedRefusal, why: string): GatewayError {
  return new GatewayError(code, { why }, { param: 'file' });
}

/** @param maxAudioSec the longest length allowed, which the message names */
export function refuseLength(maxAudioSec: number): GatewayError {
  return new GatewayError('audio_too_long', { maxSec: maxAudioSec }, { param: 'file' });
}

/** One channel would make one speaker of all who are in it, and of three or more it is unknown whom they hold. */
export function refuseChannels(
  found: number | string,
  { channel, channelField }: Pick<DecoderLimits, 'channel' | 'channelField'>,
): GatewayError {
  const expected = `Expected audio of two channels for it, and this has ${found}`;
  return channelField === 'channel'
    ? invalidValue('channel', channel, expected)
    : invalidValue('speakers', 'channels', expected);
}

/** Two channels with one sound are mono that was written as stereo. */
export const refuseEqualChannels = (): GatewayError =>
  invalidValue(
    'speakers',
    'channels',
    'Expected a speaker on each of two channels, and both channels of this hold the same sound',
  );
