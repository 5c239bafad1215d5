/** Turns the data of a client's events into what the gateway works with. */
import { z } from 'zod';
import { LIVE_RATES } from '../../audio/live/encodings.ts';
import type { PcmFormat } from '../../audio/wav-header.ts';
import { invalidValue } from '../../errors.ts';
import type { TranscriptionRequest } from '../../transcription/request.ts';
import { KEYWORDS, parseRequest } from '../../wire/request.ts';
import { checked } from '../checked.ts';

type Data = Readonly<Record<string, unknown>>;

const MAX_CHANNELS = 8;
const WIDTHS = [1, 2, 3, 4];

const format = z.object({
  rate: z.literal([...LIVE_RATES], { error: `Expected one of ${LIVE_RATES.join(', ')}` }),
  width: z.literal(WIDTHS, { error: `Expected one of ${WIDTHS.join(', ')}` }),
  channels: z
    .int(`Expected 1 to ${MAX_CHANNELS}`)
    .min(1, `Expected 1 to ${MAX_CHANNELS}`)
    .max(MAX_CHANNELS, `Expected 1 to ${MAX_CHANNELS}`),
});

/** An array of the library would have an issue for each item that is wrong, and a message has room for many. */
const words = z
  .custom<string[]>(
    (list) => Array.isArray(list) && list.every((word) => typeof word === 'string'),
    'Expected a list of texts',
  )
  .nullish();
const asked = z.object({ transcript_names: words, transcript_terms: words });

/** Voices of a speech server have short names. */
const MAX_NAME = 256;
const voice = z
  .object(
    {
      name: z.string('Expected the name of a voice').max(MAX_NAME, 'Expected the name of a voice').nullish(),
    },
    'Expected a voice',
  )
  .nullish();
/** Of SSML the marks would be spoken. */
const spoken = z.object({ voice, text_format: z.literal('text', 'Expected text').nullish() });
const speech = spoken.extend({ text: z.string('Expected a text') });

/** The format in `audio-start` and `audio-chunk`. @throws GatewayError `invalid_value` */
export const parseFormat = (data: Data): PcmFormat => checked(format, data, []);

/**
 * What `transcribe` asks for. Its names and terms are hints, of which only as many are taken as a request may have
 * keywords. Names go first. They come last in the request, because a prompt that is too long loses its beginning.
 * @throws GatewayError `invalid_value`
 */
export function parseTranscribe(data: Data): TranscriptionRequest {
  const { transcript_names: names, transcript_terms: terms } = checked(asked, data, []);
  const keywords = [...(names ?? []), ...(terms ?? [])]
    .filter((word) => word.length <= KEYWORDS.characters)
    .slice(0, KEYWORDS.most)
    .reverse();
  const { name = null, language = null } = data;
  if (name !== null && typeof name !== 'string')
    throw invalidValue('name', name, 'Expected the name of a model');
  if (language !== null && typeof language !== 'string')
    throw invalidValue('language', language, 'Expected the code or name of a language');
  return parseRequest({ model: name, language, keywords });
}

/** The name of the voice that `synthesize-start` asks for. @throws GatewayError `invalid_value` */
export const parseVoice = (data: Data): string | undefined =>
  checked(spoken, data, []).voice?.name ?? undefined;

/** What `synthesize` and `synthesize-chunk` hold. @throws GatewayError `invalid_value` */
export function parseSynthesize(data: Data): { text: string; voice: string | undefined } {
  const { text, voice } = checked(speech, data, []);
  return { text, voice: voice?.name ?? undefined };
}
