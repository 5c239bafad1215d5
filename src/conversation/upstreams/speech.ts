/**
 * Speech that the speech upstream makes of a text: a wav file, or bare samples whose format its head names. A sentence of
 * a conversation is brought to the format of its session.
 */
import { LIVE_RATES, type LiveFormat, liveEncoder, pcmDecoder } from '../../audio/live/encodings.ts';
import { type PcmFormat, readWavHead } from '../../audio/wav-header.ts';
import type { GatewayError } from '../../errors.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import { answerFailed, type Upstream } from '../../proxy/upstream.ts';
import { type Answered, type AskOptions, ask, endsByClosing } from '../../proxy/upstream-call.ts';

export interface Voice {
  model: string;
  /** Absent where the upstream chooses. */
  name: string | undefined;
  /** 1 is as fast as the voice speaks by itself. */
  speed: number;
}

/** The audio of a sentence, piece by piece, encoded. @throws GatewayError as `speechOf` */
export async function* speak(
  sentence: string,
  voice: Voice,
  format: LiveFormat,
  upstream: Upstream,
  options: AskOptions,
): AsyncGenerator<Buffer> {
  const encode = liveEncoder(format);
  let decoder: ReturnType<typeof pcmDecoder> | null = null;
  for await (const { format: sent, samples } of speechOf(sentence, voice, upstream, options)) {
    if (!(LIVE_RATES as readonly number[]).includes(sent.rate))
      throw answerFailed(upstream, `its audio has ${sent.rate} Hz`);
    decoder ??= pcmDecoder(sent, format.rate);
    const bytes = encode(decoder.take(samples));
    if (bytes.length > 0) yield bytes;
  }
  const last = decoder === null ? Buffer.alloc(0) : encode(decoder.end());
  if (last.length > 0) yield last;
}

const PIECE_BYTES = 16 * 1024;
/** Bytes within which the samples of a wav must begin; else it counts as no wav. */
const HEAD_BYTES = 16 * 1024;
const EMPTY: Buffer = Buffer.alloc(0);
const { leastMs, characterMs } = BUDGETS.spokenText;

/**
 * Asks for the audio of a text, and returns its samples as they come, in whole frames; the first piece may be empty.
 * @throws GatewayError, `upstream_failed` also for an answer that breaks off or is far too long for its text
 */
export async function* speechOf(
  text: string,
  { model, name: voice, speed }: Voice,
  upstream: Upstream,
  options: AskOptions,
): AsyncGenerator<{ format: PcmFormat; samples: Buffer }> {
  const request = {
    model,
    input: text,
    response_format: 'wav',
    ...(voice !== undefined && { voice }),
    ...(speed !== 1 && { speed }),
  };
  const { headers, body } = await ask(upstream, '/v1/audio/speech', request, options);
  const unreadable = (why: string) => answerFailed(upstream, `its answer ${why}`);
  let format = bareFormat(headers);
  const longestMs = Math.max(leastMs, text.length * characterMs);
  let left = Number.POSITIVE_INFINITY;
  let held = EMPTY;
  let sent = 0;
  for await (const chunk of body) {
    let bytes = held.length > 0 ? Buffer.concat([held, chunk]) : chunk;
    if (format === null) {
      const head = headIn(bytes, unreadable);
      held = bytes;
      if (head === null) continue;
      format = head.format;
      left = head.bytes;
      bytes = bytes.subarray(head.start);
      yield { format, samples: EMPTY };
    }
    const frame = format.width * format.channels;
    const whole = Math.min(bytes.length, left);
    const end = whole - (whole % frame);
    const most = PIECE_BYTES - (PIECE_BYTES % frame);
    for (let at = 0; at < end; at += most)
      yield { format, samples: bytes.subarray(at, Math.min(end, at + most)) };
    left -= end;
    sent += end;
    if (sent / (frame * format.rate) > longestMs / 1000) throw unreadable('does not come to an end');
    held = left < frame ? EMPTY : bytes.subarray(end); // other chunks of the file may follow the samples
  }
  if (format === null) throw unreadable('is no audio');
  // Where only the end of the connection ends the answer, nothing else tells that it was cut short.
  if (left >= format.width * format.channels && Number.isFinite(left) && endsByClosing({ headers }))
    throw unreadable('broke off');
}

function headIn(bytes: Buffer, unreadable: (why: string) => GatewayError) {
  try {
    const head = readWavHead(bytes);
    if (head === null && bytes.length > HEAD_BYTES) throw new Error('has no samples');
    return head;
  } catch (error) {
    throw unreadable((error as Error).message);
  }
}

/** The format of samples without a head, where the answer says that it has none: OpenAI's, unless it names a rate. */
function bareFormat(headers: Answered['headers']): PcmFormat | null {
  if (!/^audio\/(pcm|l16)\b/i.test(headers['content-type'] ?? '')) return null;
  const rate = Number(headers['x-sample-rate'] ?? /\brate=(\d+)/.exec(headers['content-type'] ?? '')?.[1]);
  return { rate: Number.isInteger(rate) && rate > 0 ? rate : 24_000, width: 2, channels: 1 };
}
