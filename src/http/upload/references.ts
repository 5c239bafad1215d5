/** Reads the voices of known speakers, which a form holds as data URLs (RFC 2397) of audio in any format. */
import { joined, SAMPLE_RATE } from '../../audio/decoder.ts';
import type { AudioSource } from '../../audio/open.ts';
import { GatewayError, invalidValue } from '../../errors.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import type { SpeakerRequest } from '../../transcription/request.ts';
import type { Reference } from '../../transcription/speakers/session-pass.ts';
import type { Upload } from './upload.ts';

const { leastReferenceMs, longestReferenceMs } = BUDGETS.speakers;
const toSamples = (ms: number) => (ms / 1000) * SAMPLE_RATE;
/** Encoders pad to whole frames, and a sound of exactly 10 s must pass. */
const SLACK_SAMPLES = SAMPLE_RATE / 10;
/** No sample of a silent reference is as loud, of 1: -60 dB. A voice that soft could not be told from the noise. */
const SILENT_BELOW = 0.001;

const EXPECTED = `Expected a data URL of ${leastReferenceMs / 1000} to ${longestReferenceMs / 1000} s of audio in base64`;

export interface ReferenceReading {
  upload: Pick<Upload, 'store'>;
  open(path: string, signal: AbortSignal): Promise<AudioSource>;
  signal: AbortSignal;
}

/**
 * The references as samples, in the order of the request.
 * @throws GatewayError `invalid_value` that names the item at fault and what is wrong with its sound
 */
export async function readReferences(
  known: SpeakerRequest['known'],
  { upload, open, signal }: ReferenceReading,
): Promise<Reference[]> {
  const references: Reference[] = [];
  for (const [i, { name, reference }] of known.entries()) {
    const { type, content } = parseDataUrl(reference, i);
    try {
      await using source = await open(await upload.store(content), signal);
      references.push({ name, samples: await samplesOf(source, i, type) });
    } catch (error) {
      // A sound that cannot be decoded is the fault of this field, and not of the file.
      if (!(error instanceof GatewayError) || error.kind !== 'malformed' || error.code === 'invalid_value')
        throw error;
      throw refusal(i, type, error.message);
    }
  }
  return references;
}

function parseDataUrl(url: string, i: number): { type: string; content: Buffer } {
  const comma = url.slice(0, 200).indexOf(',');
  const [, type] = /^data:([^,]*);base64$/i.exec(url.slice(0, Math.max(0, comma))) ?? [];
  const encoded = url.slice(comma + 1);
  if (type === undefined || !/^[\w+/-]+={0,2}\s*$/.test(encoded)) throw refusal(i, 'no data URL in base64');
  return { type, content: Buffer.from(encoded, 'base64') };
}

async function samplesOf(source: AudioSource, i: number, type: string): Promise<Float32Array> {
  const blocks: Float32Array[] = [];
  let length = 0;
  for await (const block of source.blocks()) {
    blocks.push(block);
    length += block.length;
    if (length > toSamples(longestReferenceMs) + SLACK_SAMPLES) break;
  }
  if (length < toSamples(leastReferenceMs))
    throw refusal(i, `${type} of ${(length / SAMPLE_RATE).toFixed(1)} s`);
  if (length > toSamples(longestReferenceMs) + SLACK_SAMPLES)
    throw refusal(i, `${type} of more than ${longestReferenceMs / 1000} s`);
  const samples = joined(blocks);
  if (samples.every((sample) => Math.abs(sample) < SILENT_BELOW)) throw refusal(i, `${type} of silence`);
  return samples;
}

/** The refusal shows no part of the sound, because refusals are logged and a voice stays out of the log. */
function refusal(i: number, what: string, why?: string): GatewayError {
  const expected = why === undefined ? EXPECTED : `${EXPECTED}. ${why}`;
  return invalidValue(`known_speaker_references[${i}]`, what, expected, 'known_speaker_references');
}
