/**
 * POST /asr and POST /detect-language, the API of whisper-asr-webservice. Bazarr and other subtitle programs speak it.
 * The parameters are in the query, the audio is the part `audio_file`, and with `encode=false` it has no header: signed
 * 16-bit little-endian samples, 16 kHz, mono.
 */
import type { Request } from 'express';
import { z } from 'zod';
import { SAMPLE_RATE } from '../audio/decoder.ts';
import { wavHeader } from '../audio/wav-header.ts';
import { invalidValue } from '../errors.ts';
import { languageName } from '../transcription/language/names.ts';
import { isTruthy } from '../truthy.ts';
import { formatTranscript } from '../wire/formats.ts';
import { choiceIn, oneOfRepeated, parseRequest } from '../wire/request.ts';
import { toTsv, toWhisperJson } from '../wire/whisper-formats.ts';
import type { Dialect } from './transcriptions.ts';

/** The paths of that API. */
export const WHISPER_ASR: readonly string[] = ['/asr', '/detect-language'];

const OUTPUTS = ['txt', 'srt', 'vtt', 'json', 'tsv'] as const;
/** How each output format is written. */
const FORMAT_OF = { txt: 'text', srt: 'srt', vtt: 'vtt', json: 'verbose_json', tsv: 'verbose_json' } as const;
const TASKS = ['transcribe', 'translate'] as const;
const RAW = wavHeader({ rate: SAMPLE_RATE, width: 2, channels: 1 });
/** How much speech detects a language. The reference code uses as much audio, but from the start of the file. */
const ENOUGH_SPEECH_SEC = 30;

const encode = z
  .string()
  .optional()
  .describe('`false`: the file holds bare samples, s16le, 16 kHz, mono; else any container (default)');

const model = z.string().optional().describe('a model id, an alias, or `auto` (default)');
const video_file = z.string().optional().describe('no effect');

/** The parameters of the query, for the description of the API. */
export const asrQuery = z.object({
  model,
  task: z.enum(TASKS).optional().describe('default `transcribe`; `translate` = English text'),
  language: z.string().optional().describe('ISO 639 code or English name; absent = detect'),
  output: z.enum(OUTPUTS).optional().describe('default `txt`'),
  encode,
  max_line_width: z.string().optional().describe('the most characters in a line of `srt` and `vtt` (42)'),
  max_line_count: z.string().optional().describe('the most lines of a subtitle in `srt` and `vtt` (2)'),
  initial_prompt: z.string().optional().describe('text the model is conditioned on'),
  word_timestamps: z.string().optional().describe('`true`: words in `json`'),
  diarize: z.string().optional().describe('`true`: tells speakers apart'),
  num_speakers: z.string().optional().describe('the number of speakers, if known'),
  min_speakers: z.string().optional().describe('the least number of speakers'),
  max_speakers: z.string().optional().describe('the most speakers'),
  vad_filter: z.string().optional().describe('no effect: silence never reaches a model'),
  video_file,
});
export const detectQuery = z.object({ model, encode, video_file });

export const asrDialect: Dialect = {
  upload: (req) => uploadOf(req),
  request(_fields, { query }, aliases) {
    const { diarize, num_speakers, min_speakers, max_speakers, max_line_width, max_line_count } = query;
    const output = outputOf(query);
    const asked = {
      model: query.model,
      language: query.language,
      prompt: query.initial_prompt,
      translate: choiceOf(TASKS, 'task', query.task) === 'translate' ? 'true' : '',
      response_format: FORMAT_OF[output],
      // The programs that use this API show the cues below a video.
      segment_granularity: output === 'srt' || output === 'vtt' ? 'subtitle' : 'sentence',
      timestamp_granularities: switchOf(query, 'word_timestamps') ? 'word' : '',
      diarize,
      num_speakers,
      min_speakers,
      max_speakers,
      max_line_width,
      max_line_count,
    };
    return parseRequest(asked, aliases);
  },
  answer(transcript, request, { query }) {
    const output = outputOf(query);
    if (output === 'tsv') return toTsv(transcript);
    return output === 'json' ? toWhisperJson(transcript, request) : formatTranscript(transcript, request);
  },
};

export const detectDialect: Dialect = {
  upload: (req) => uploadOf(req),
  request: (_fields, { query }) => parseRequest({ model: query.model }),
  enoughSec: ENOUGH_SPEECH_SEC,
  answer: ({ summary }) => ({
    contentType: 'application/json; charset=utf-8',
    body: JSON.stringify({
      detected_language: languageName(summary.language),
      language_code: summary.language,
      confidence: Number(summary.languageProbability.toFixed(4)),
    }),
  }),
};

type Query = Request['query'];

const outputOf = (query: Query) => choiceOf(OUTPUTS, 'output', query.output);

/** Undefined where nothing was sent. */
function switchOf(query: Query, name: string): boolean | undefined {
  const sent = query[name];
  const isOn = oneOfRepeated(sent, (word) => (typeof word === 'string' ? isTruthy(word) : word));
  if (isOn === undefined || typeof isOn === 'boolean') return isOn;
  throw invalidValue(name, sent, 'Expected one text value');
}

const uploadOf: Dialect['upload'] = ({ query }) => ({
  field: 'audio_file',
  ...(switchOf(query, 'encode') === false && { head: RAW }),
});

/** The first of `values` where nothing was sent. */
function choiceOf<const T extends readonly [string, ...string[]]>(
  values: T,
  name: string,
  sent: Query[string],
): T[number] {
  const word = oneOfRepeated(sent, (of) => (typeof of === 'string' ? choiceIn(values, of) : of));
  if (word === undefined) return values[0];
  const known = values.find((value) => value === word);
  if (known === undefined) throw invalidValue(name, sent, `Expected ${values.join(', ')}`);
  return known;
}
