/** The voice of a conversation: a sentence becomes audio in the format of the session, made by the speech upstream. */
import { LIVE_RATES, type LiveFormat, liveEncoder, pcmDecoder } from '../../audio/live/encodings.ts';
import { GatewayError } from '../../errors.ts';
import type { Upstream } from '../../proxy/upstream.ts';
import { type AskOptions, ask } from '../../proxy/upstream-call.ts';
import { readPcm } from './speech-pcm.ts';

export interface Voice {
  model: string;
  /** Absent where the upstream chooses. */
  name: string | undefined;
  /** 1 is as fast as the voice speaks by itself. */
  speed: number;
}

/** Asks for the audio of a sentence, and returns it piece by piece, encoded. @throws GatewayError */
export async function* speak(
  sentence: string,
  { model, name, speed }: Voice,
  format: LiveFormat,
  upstream: Upstream,
  options: AskOptions,
): AsyncGenerator<Buffer> {
  const request = {
    model,
    input: sentence,
    response_format: 'wav',
    ...(name !== undefined && { voice: name }),
    ...(speed !== 1 && { speed }),
  };
  const answered = await ask(upstream, '/v1/audio/speech', request, options);
  const encode = liveEncoder(format);
  let decoder: ReturnType<typeof pcmDecoder> | null = null;
  for await (const { format: sent, samples } of readPcm(answered, upstream, sentence.length)) {
    if (!(LIVE_RATES as readonly number[]).includes(sent.rate))
      throw new GatewayError(
        'upstream_failed',
        { upstream: upstream.name, why: `its audio has ${sent.rate} Hz` },
        { provider: upstream.category },
      );
    decoder ??= pcmDecoder(sent, format.rate);
    const bytes = encode(decoder.take(samples));
    if (bytes.length > 0) yield bytes;
  }
  const last = decoder === null ? Buffer.alloc(0) : encode(decoder.end());
  if (last.length > 0) yield last;
}
