/** Checks the fields of a request and turns them into domain terms. The API description shows the same schema. */
import { z } from 'zod';
import { BUDGETS } from '../budgets.ts';
import { type GatewayError, invalidValue } from '../errors.ts';
import { isTruthy } from '../truthy.ts';
import type { ChannelLabels } from './channels.ts';
import { parseLanguage } from './languages.ts';
import { type SpeakerRequest, speakersIn } from './speaker-fields.ts';

const FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const;
const TASKS = ['transcribe', 'transcribe_raw', 'rich'] as const;

export type ResponseFormat = (typeof FORMATS)[number];
export type Granularity = 'word' | 'segment';
export type SegmentGranularity = 'sentence' | 'subtitle';
/**
 * The task of the CJK model: text with punctuation and digits, text without them, or text with the emotion and the
 * sound event of each segment.
 */
export type TaskType = (typeof TASKS)[number];

/** When speech begins and ends. An undefined value means the default of the gateway. */
export interface VoiceActivityTuning {
  /** The probability at which speech begins, 0..1. */
  threshold: number | undefined;
  prefixPaddingMs: number | undefined;
  silenceDurationMs: number | undefined;
}

export interface TranscriptionRequest {
  model: string | undefined;
  /** ISO 639 code. */
  language: string | undefined;
  /** The languages to choose among when none is given; empty means all. */
  languages: readonly string[];
  prompt: string;
  keywords: readonly string[];
  /** The text to align; absent when the text is to be heard. */
  text?: string;
  temperature: number;
  /** Texts that are followed side by side where a chunk is in doubt; undefined for the default of the gateway. */
  beamSize: number | undefined;
  responseFormat: ResponseFormat;
  granularities: ReadonlySet<Granularity>;
  segmentGranularity: SegmentGranularity;
  logprobs: boolean;
  voiceActivity: VoiceActivityTuning;
  taskType: TaskType;
  translate: boolean;
  stream: boolean;
  /** Null when speakers are not told apart by their voices. */
  speakers: SpeakerRequest | null;
  /** Who speaks on each channel; null when the average of all channels is heard. */
  channels: ChannelLabels | null;
}

/** The most values of one list. */
export const MOST_VALUES = 100;
/** The most keywords of a request, and the most characters of one. */
export const KEYWORDS = { most: MOST_VALUES, characters: 200 };

/**
 * The most characters of one value. They are counted before any other check, because a pattern, a parser or a
 * comparison may take far more time than it took to send the text.
 */
const MAX_CHARACTERS = 1024;
const MAX_CHARACTERS_OF: Readonly<Record<string, number>> = {
  prompt: 64 * 1024,
  keywords: KEYWORDS.characters,
  known_speaker_names: BUDGETS.speakers.nameSize,
  known_speaker_references: BUDGETS.speakers.referenceBytes,
};
const maxCharacters = (field: string) => MAX_CHARACTERS_OF[field] ?? MAX_CHARACTERS;

const textUpTo = (maxLength: number) => z.string({ error: 'Expected one text value' }).meta({ maxLength });
const text = textUpTo(MAX_CHARACTERS);
const flag = text.transform(isTruthy);

const language = text.transform((value, context) => {
  if (value.trim().toLowerCase() === 'auto') return undefined;
  const code = parseLanguage(value);
  if (code === undefined) context.addIssue('Expected an ISO 639 code or an English language name');
  return code;
});

function numeric(min: number, max: number) {
  const expected = `Expected a number from ${min} to ${max}`;
  const spelled = text.regex(/^\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*$/i).transform(Number);
  return z
    .union([z.number(), spelled], { error: expected })
    .pipe(z.number().min(min, expected).max(max, expected));
}

function whole(min: number, max: number) {
  const expected = `Expected a whole number from ${min} to ${max}`;
  const spelled = text.regex(/^\s*\d+\s*$/).transform(Number);
  return z
    .union([z.number(), spelled], { error: expected })
    .pipe(z.int(expected).min(min, expected).max(max, expected));
}

const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: `Expected ${values.join(', ')}` });

const list = <T extends z.ZodType>(value: T, max = MOST_VALUES) =>
  z.array(value).max(max, `Expected at most ${max} values`);

const speakers = whole(1, BUDGETS.speakers.most).optional();

const CHUNKING =
  'Expected auto or {"type": "server_vad"} with threshold, prefix_padding_ms and silence_duration_ms';

const serverVad = z.strictObject(
  {
    type: z.literal('server_vad', CHUNKING),
    threshold: numeric(0, 1)
      .optional()
      .describe('probability at which speech begins (0.5); at 0 all of the audio is speech'),
    prefix_padding_ms: numeric(0, 5000).optional().describe('silence kept around speech (200)'),
    silence_duration_ms: numeric(0, 10_000).optional().describe('silence that ends speech (500)'),
  },
  { error: CHUNKING },
);

/** The fields with one value. */
const FIELDS = {
  model: text.optional().describe('a model id, an alias, or `auto` (default)'),
  language: language.optional().describe('ISO 639 code or English name; absent or `auto` = detect'),
  prompt: textUpTo(maxCharacters('prompt'))
    .optional()
    .describe('text the model is conditioned on: names, spelling, style'),
  temperature: numeric(0, 1)
    .optional()
    .describe('0 (default) = the most probable text, with fallback when the result is doubtful'),
  beam_size: whole(1, BUDGETS.whisper.maxBeams)
    .optional()
    .describe('texts that are followed side by side where a chunk is in doubt; 1 = greedy'),
  response_format: oneOf(FORMATS).optional().describe('default `json`'),
  segment_granularity: oneOf(['sentence', 'subtitle'])
    .optional()
    .describe('default `sentence`; `subtitle` = at most 70 characters and 1 to 7 s'),
  task_type: oneOf(TASKS).optional().describe('cjk only: default `transcribe`'),
  translate: flag.optional().describe('`1 on true yes y`: English text from any language'),
  stream: flag.optional().describe('`1 on true yes y`: server-sent events'),
  diarize: flag.optional().describe('`1 on true yes y`: tells speakers apart'),
  speakers: oneOf(['channels'])
    .optional()
    .describe('`channels`: each channel of a stereo recording is one speaker'),
  num_speakers: speakers.describe('how many speakers there are, if it is known'),
  min_speakers: speakers.describe('the least number of speakers (1)'),
  max_speakers: speakers.describe(`the most speakers (${BUDGETS.speakers.most})`),
  chunking_strategy: z
    .union([z.literal('auto'), serverVad], { error: CHUNKING })
    .optional()
    .describe(
      'voice activity detection: `auto` (default), or an object as JSON or as `chunking_strategy[type]` …',
    ),
};

/** The fields that may be sent several times, as `name[]` or `name`. */
const LISTS = {
  languages: list(language).describe('languages to choose among when none is given'),
  keywords: list(textUpTo(maxCharacters('keywords'))).describe('names and terms to expect'),
  timestamp_granularities: list(oneOf(['word', 'segment'])).describe(
    'what `verbose_json` holds; default segment',
  ),
  include: list(oneOf(['logprobs'])).describe('`logprobs`: log probability of every token'),
  known_speaker_names: list(
    textUpTo(maxCharacters('known_speaker_names')).refine(
      (name) => name.trim() !== '' && !/\p{Cc}/u.test(name),
      'Expected a name on one line',
    ),
    BUDGETS.speakers.references,
  ).describe('the names of the speakers whose voices are in `known_speaker_references`'),
  known_speaker_references: list(
    textUpTo(maxCharacters('known_speaker_references')),
    BUDGETS.speakers.references,
  ).describe('2 to 10 s of each known speaker, as data URLs of audio in any format'),
};

const schema = z.object({ ...FIELDS, ...LISTS });

/** All fields as a client sends them, for the description of the API. */
export const transcriptionFields = { ...FIELDS, ...LISTS };

/**
 * Parses the fields of a request.
 * @param body the multipart text fields by name; a field that was sent several times is an array
 * @throws GatewayError `invalid_value` that names the field, the value and what is allowed
 */
export function parseRequest(body: Readonly<Record<string, unknown>>): TranscriptionRequest {
  refuseLongValues(body);
  const lists = Object.keys(LISTS).map((name) => [name, listOf(body, name)]);
  const singles = Object.keys(FIELDS).map((name) => [name, singleOf(body, name)]);
  const sent = Object.fromEntries([...singles, ...lists]);
  const parsed = schema.safeParse(sent);
  if (!parsed.success) {
    const { path, message } = firstFault(parsed.error);
    throw badField(path, path.reduce(memberOf, sent), message);
  }
  const f = parsed.data;
  const vad = typeof f.chunking_strategy === 'object' ? f.chunking_strategy : undefined;
  return {
    model: f.model,
    language: f.language,
    languages: f.languages.filter((code) => code !== undefined),
    prompt: f.prompt ?? '',
    keywords: f.keywords,
    temperature: f.temperature ?? 0,
    beamSize: f.beam_size,
    responseFormat: f.response_format ?? 'json',
    granularities: new Set(f.timestamp_granularities.length > 0 ? f.timestamp_granularities : ['segment']),
    segmentGranularity: f.segment_granularity ?? 'sentence',
    logprobs: f.include.includes('logprobs'),
    voiceActivity: {
      threshold: vad?.threshold,
      prefixPaddingMs: vad?.prefix_padding_ms,
      silenceDurationMs: vad?.silence_duration_ms,
    },
    taskType: f.task_type ?? 'transcribe',
    translate: f.translate ?? false,
    stream: f.stream ?? false,
    ...speakersIn(f),
  };
}

/** An empty field counts as absent, because HTML forms and some clients send every field that they know. */
function singleOf(body: Readonly<Record<string, unknown>>, name: string): unknown {
  const value = body[name];
  if (value === '' || value === null) return undefined;
  return name === 'chunking_strategy' ? withoutEmptyMembers(fromJson(value)) : value;
}

function fromJson(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** An empty member counts as absent, as an empty field does, and so does an object without members. */
function withoutEmptyMembers(value: unknown): unknown {
  if (typeof value !== 'object' || Array.isArray(value)) return value;
  const members = Object.entries(value ?? {}).filter(([, member]) => member !== '' && member !== null);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

function listOf(body: Readonly<Record<string, unknown>>, name: string): unknown[] {
  return [body[`${name}[]`] ?? [], body[name] ?? []].flat().filter((value) => value !== '');
}

function refuseLongValues(body: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(transcriptionFields)) {
    const max = maxCharacters(name);
    const long = [body[name], body[`${name}[]`]].flatMap(textsIn).find((value) => value.length > max);
    if (long !== undefined) throw badField([name], long, `Expected at most ${max} characters`);
  }
}

/** The texts in a field: the field itself, the items of a list, or the members of an object. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Object.values(value ?? {}).filter((member) => typeof member === 'string');
}

/** What is wrong first. Where a field may be a word or an object, a fault of a member is the one to tell. */
function firstFault({ issues: [issue] }: z.ZodError): { path: PropertyKey[]; message: string } {
  if (issue === undefined) return { path: [], message: '' };
  const inner =
    issue.code === 'invalid_union' ? issue.errors.flat().find(({ path }) => path.length > 0) : undefined;
  return { path: [...issue.path, ...(inner?.path ?? [])], message: (inner ?? issue).message };
}

/** @param path the field, then the place in it that is at fault: an index of a list or a member of an object */
function badField(path: readonly PropertyKey[], value: unknown, expected: string): GatewayError {
  const [name = 'request', ...members] = path.filter((key) => typeof key !== 'number').map(String);
  const field = [name, ...members.map((member) => `[${member}]`)].join('');
  return invalidValue(field, value, expected, name);
}

const memberOf = (value: unknown, key: PropertyKey): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
