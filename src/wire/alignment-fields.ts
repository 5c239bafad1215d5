/** The fields of a request for an alignment. */
import { z } from 'zod';
import { invalidValue } from '../errors.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { unitsOf } from '../transcription/alignment/units.ts';
import type { TranscriptionRequest } from '../transcription/request.ts';
import { oneOfRepeated, parseRequest, transcriptionFields } from './request.ts';

const { model, language } = transcriptionFields;

/** All fields as a client sends them, for the description of the API. */
export const alignmentFields = {
  text: z
    .string()
    .describe(`the text spoken in the audio; at most ${BUDGETS.alignment.textBytes / 1024} KiB of UTF-8`),
  model,
  language,
};

/**
 * The most combining marks in a row, as in Unicode's Stream-Safe Text Format (UAX 15, section 13). Normalization sorts
 * them, in a time that grows with the square of their number.
 */
const MOST_MARKS = 30;
const MARKS = /\p{M}{31}/u;

/**
 * Parses the fields of a request.
 * @param body the fields by name, as `parseRequest` takes them
 * @throws GatewayError `invalid_value` that names the field, the value and what is allowed
 */
export function parseAlignment(body: Readonly<Record<string, unknown>>): TranscriptionRequest {
  const text = Array.isArray(body.text) ? oneOfRepeated(body.text) : body.text;
  if (typeof text !== 'string') throw invalidValue('text', text, 'Expected one text value');
  const { textBytes } = BUDGETS.alignment;
  if (Buffer.byteLength(text) > textBytes)
    throw invalidValue('text', text, `Expected at most ${textBytes} bytes`);
  if (MARKS.test(text)) throw invalidValue('text', text, `Expected at most ${MOST_MARKS} marks on a letter`);
  if (unitsOf(text).length === 0) throw invalidValue('text', text, 'Expected the words that are said');
  // Greedy decoding will do: what is recognized only shows which part of the text a chunk holds.
  const fields = { ...parseRequest({ model: body.model, language: body.language }), beamSize: 1 };
  return {
    ...fields,
    text,
    responseFormat: 'verbose_json',
    granularities: new Set(['segment', 'word']),
    speakers: null, // an alignment shows no speakers, even with a model whose name asks for them
  };
}
