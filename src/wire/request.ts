/** Checks the fields of a request and turns them into domain terms. The API description shows the same schema. */
import { z } from 'zod';
import { type GatewayError, invalidValue } from '../errors.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { type Aliases, DIARIZES, isOpenAiModel, TELLS_LANGUAGES } from '../models/names.ts';
import { parsedJson } from '../parsed-json.ts';
import type { ChannelLabels } from '../transcription/channels.ts';
import { meantBy, namesNoLanguage, parseLanguage } from '../transcription/language/names.ts';
import { FORMATS, type SpeakerRequest, TASKS, type TranscriptionRequest } from '../transcription/request.ts';
import { USUAL_SIZE } from '../transcription/text/subtitles.ts';
import { isTruthy } from '../truthy.ts';

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
/** The most characters of a list that is sent as one text; each of its values has the limit of the field as well. */
const LIST_CHARACTERS = 64 * 1024;
const maxCharacters = (field: string) => MAX_CHARACTERS_OF[field] ?? MAX_CHARACTERS;

const textUpTo = (maxLength: number) => z.string({ error: 'Expected one text value' }).meta({ maxLength });
const text = textUpTo(MAX_CHARACTERS);
/** The description gives the type that a client means. In a form every value is text. */
const flag = text.transform(isTruthy).meta({ override: onlyType({ type: 'boolean' }) });

const language = text.transform((value, context) => {
  if (namesNoLanguage(value)) return undefined;
  const code = parseLanguage(value);
  if (code === undefined)
    context.addIssue(`Expected an ISO 639 code or an English language name${meantBy(value)}`);
  return code;
});

/** Describes a field by this type alone, without the spellings of it that are understood. */
function onlyType(type: { type: 'boolean' | 'number' | 'integer'; minimum?: number; maximum?: number }) {
  return ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
    for (const keyword of ['anyOf', 'maxLength']) delete jsonSchema[keyword];
    Object.assign(jsonSchema, type);
  };
}

function numeric(min: number, max: number) {
  const expected = `Expected a number from ${min} to ${max}`;
  const spelled = text.regex(/^\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*$/i).transform(Number);
  return z
    .union([z.number(), spelled], { error: expected })
    .pipe(z.number().min(min, expected).max(max, expected))
    .meta({ override: onlyType({ type: 'number', minimum: min, maximum: max }) });
}

function whole(min: number, max: number) {
  const expected = `Expected a whole number from ${min} to ${max}`;
  const spelled = text.regex(/^\s*\d+\s*$/).transform(Number);
  return z
    .union([z.number(), spelled], { error: expected })
    .pipe(z.int(expected).min(min, expected).max(max, expected))
    .meta({ override: onlyType({ type: 'integer', minimum: min, maximum: max }) });
}

export const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: `Expected ${values.join(', ')}` });

const list = <T extends z.ZodType>(value: T, max = MOST_VALUES) =>
  z.array(value).max(max, `Expected at most ${max} values`);

const speakers = whole(1, BUDGETS.speakers.most).optional();

const CHUNKING =
  'Expected auto or {"type": "server_vad"} with threshold, prefix_padding_ms and silence_duration_ms';

const CHUNKING_MEMBERS = 'Expected only type, threshold, prefix_padding_ms and silence_duration_ms';

const serverVad = z.strictObject(
  {
    type: z.literal('server_vad', CHUNKING),
    threshold: numeric(0, 1)
      .optional()
      .describe('probability at which speech begins (0.5); at 0 all audio counts as speech'),
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
    .describe('beams used when a chunk is doubtful; 1 = greedy'),
  response_format: oneOf(FORMATS).optional().describe('default `json`'),
  segment_granularity: oneOf(['sentence', 'subtitle'])
    .optional()
    .describe('default `sentence`; `subtitle` = at most 70 characters and 1 to 7 s'),
  max_line_width: whole(1, 1000)
    .optional()
    .describe('srt, vtt: subtitles whose lines have at most this many characters (42)'),
  max_line_count: whole(1, 1000).optional().describe('srt, vtt: subtitles with at most this many lines (2)'),
  task_type: oneOf(TASKS).optional().describe('cjk only: default `transcribe`'),
  translate: flag.optional().describe('`1 on true yes y`: English text from any language'),
  stream: flag.optional().describe('`1 on true yes y`: server-sent events'),
  diarize: flag.optional().describe('`1 on true yes y`: tells speakers apart'),
  speakers: oneOf(['channels'])
    .optional()
    .describe('`channels`: each channel of a stereo recording is one speaker'),
  channel: whole(0, 1)
    .optional()
    .describe('0 or 1: only the left or the right channel of a stereo recording is heard'),
  track: whole(0, 99).optional().describe('the audio track of a file with several, from 0'),
  num_speakers: speakers.describe('the number of speakers, if known'),
  min_speakers: speakers.describe('the minimum number of speakers (1)'),
  max_speakers: speakers.describe(`the maximum number of speakers (${BUDGETS.speakers.most})`),
  chunking_strategy: z
    .union([z.literal('auto'), serverVad], { error: CHUNKING })
    .optional()
    .describe(
      'voice activity detection: `auto` (default), or an object as JSON or as `chunking_strategy[type]` …',
    ),
};

/** The fields with several values (`listOf`). */
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

/** All fields as a client sends them, for the description of the API. */
export const transcriptionFields = { ...FIELDS, ...LISTS };

const schema = z.object(transcriptionFields);

/** The fields, each checked by itself. */
type Fields = z.output<typeof schema>;

/**
 * Parses the fields of a request.
 * @param body the fields by name: a text, an array of what was sent several times, or an object of members; an event or
 *   a query may have numbers as well
 * @param aliases an alias of a model does what the model does
 * @throws GatewayError `invalid_value` that names the field, the value and what is allowed
 */
export function parseRequest(
  body: Readonly<Record<string, unknown>>,
  aliases: Aliases = {},
): TranscriptionRequest {
  for (const name of Object.keys(FIELDS)) refuseLongValues(name, body[name], maxCharacters(name));
  for (const name of Object.keys(LISTS))
    refuseLongValues(name, body[name], Math.max(LIST_CHARACTERS, maxCharacters(name)));
  const singles = Object.entries(FIELDS).map(([name, field]) => [
    name,
    oneOfRepeated(body[name], (value) => asWritten(name, field, value)),
  ]);
  const lists = Object.entries(LISTS).map(([name, field]) => [name, listOf(name, field, body[name])]);
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
    ...subtitlesIn(f),
    logprobs: f.include.includes('logprobs'),
    listsLanguages: isOpenAiModel([TELLS_LANGUAGES], f.model ?? '', aliases),
    voiceActivity: {
      threshold: vad?.threshold,
      prefixPaddingMs: vad?.prefix_padding_ms,
      silenceDurationMs: vad?.silence_duration_ms,
    },
    taskType: f.task_type ?? 'transcribe',
    translate: f.translate ?? false,
    stream: f.stream ?? false,
    ...speakersIn(f, aliases),
    channel: channelIn(f),
    track: f.track,
  };
}

/** Who says how subtitles are to look wants subtitles. These are as long as their lines allow. */
function subtitlesIn(f: Fields): Pick<TranscriptionRequest, 'segmentGranularity' | 'subtitleSize'> {
  const { max_line_width: lineWidth = USUAL_SIZE.lineWidth, max_line_count: lines = USUAL_SIZE.lines } = f;
  const isSized = f.max_line_width !== undefined || f.max_line_count !== undefined;
  const hasCues = f.response_format === 'srt' || f.response_format === 'vtt';
  return {
    segmentGranularity: f.segment_granularity ?? (isSized && hasCues ? 'subtitle' : 'sentence'),
    subtitleSize: isSized ? { lineWidth, lines, characters: lineWidth * lines } : USUAL_SIZE,
  };
}

/** @throws GatewayError `invalid_value` for fields that do not fit each other */
function speakersIn(
  f: Fields,
  aliases: Aliases,
): {
  speakers: SpeakerRequest | null;
  channels: ChannelLabels | null;
} {
  return f.speakers === 'channels'
    ? { speakers: null, channels: channelsIn(f) }
    : { speakers: voicesIn(f, aliases), channels: null };
}

/** @throws GatewayError `invalid_value` where each channel is to be heard */
function channelIn({ channel, speakers }: Fields): TranscriptionRequest['channel'] {
  if (channel === undefined) return undefined;
  if (speakers === 'channels') throw invalidValue('channel', channel, 'Expected none for speakers=channels');
  return channel === 0 ? 0 : 1;
}

/** @throws GatewayError `invalid_value` for numbers or lists that do not fit each other */
function voicesIn(f: Fields, aliases: Aliases): SpeakerRequest | null {
  const { known_speaker_names: names, known_speaker_references: references } = f;
  const { min, max } = countIn(f);
  if (names.length !== references.length) {
    const expected = `Expected one reference for each of the ${names.length} known_speaker_names`;
    throw invalidValue('known_speaker_references', references, expected);
  }
  refuseTwice(names.map((name) => name.trim()));
  const asked =
    f.diarize ??
    (isOpenAiModel([DIARIZES], f.model ?? '', aliases) ||
      f.response_format === 'diarized_json' ||
      names.length > 0);
  if (!asked && f.response_format === 'diarized_json')
    throw invalidValue('diarize', 'off', 'Expected it on for diarized_json');
  if (!asked) return null;
  const known = names.map((name, i) => ({ name: name.trim(), reference: references[i] ?? '' }));
  return { count: { min, max }, known };
}

/** @throws GatewayError `invalid_value` for fields that do not fit two channels, each with one speaker */
function channelsIn(f: Fields): ChannelLabels {
  const { min, max } = countIn(f);
  if (f.diarize === false) throw invalidValue('diarize', 'off', 'Expected it on for speakers=channels');
  if (min > 2) throw invalidValue('min_speakers', min, 'Expected at most 2 for speakers=channels');
  if (max < 2) throw invalidValue('max_speakers', max, 'Expected at least 2 for speakers=channels');
  const { known_speaker_names: names, known_speaker_references: references } = f;
  if (references.length > 0)
    throw invalidValue('known_speaker_references', references, 'Expected none for speakers=channels');
  if (names.length === 0) return ['A', 'B'];
  const [left, right, ...more] = names.map((name) => name.trim());
  if (left === undefined || right === undefined || more.length > 0) {
    const expected = 'Expected two for speakers=channels: who is left, then who is right';
    throw invalidValue('known_speaker_names', names, expected);
  }
  refuseTwice([left, right]);
  return [left, right];
}

function countIn(f: Fields): SpeakerRequest['count'] {
  const max = f.num_speakers ?? f.max_speakers ?? BUDGETS.speakers.most;
  const min = f.num_speakers ?? f.min_speakers ?? 1;
  if (min > max) throw invalidValue('min_speakers', min, `Expected at most max_speakers (${max})`);
  return { min, max };
}

function refuseTwice(names: readonly string[]): void {
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw invalidValue('known_speaker_names', twice, 'Expected each name once');
}

/**
 * The value of a field that has one. Empty counts as absent, because HTML forms and some clients send every field that
 * they know. The same value twice is one, and of two that differ none is chosen.
 * @param asWritten brings a value into the spelling in which values are compared
 */
export function oneOfRepeated(value: unknown, asWritten = (sent: unknown) => sent): unknown {
  const isRepeated = Array.isArray(value) && value.length > 0 && value.length <= MOST_VALUES;
  const sent = new Set(isRepeated ? value : [value]);
  const values = new Set([...sent].filter(isSent).map(asWritten).filter(isSent));
  return values.size > 1 ? [...values] : [...values][0];
}

const isSent = (value: unknown) => value !== '' && value !== null && value !== undefined;

/** A value in the spelling of the schema: words of a choice in any case, and nothing but the name around a name. */
function asWritten(name: string, field: z.ZodType, value: unknown): unknown {
  if (name === 'chunking_strategy') return chunkingOf(value);
  if (typeof value !== 'string') return value;
  return name === 'model' ? value.trim() : choiceIn(optionsOf(field), value);
}

/** The one of `options` that `text` is in any case, also with white space around it; else the text itself. */
export function choiceIn(options: readonly string[], text: string): string {
  if (options.length === 0) return text;
  const word = text.trim().toLowerCase();
  return word === '' || options.includes(word) ? word : text;
}

/** The words that a field chooses among; empty where it takes any text. */
function optionsOf(field: z.ZodType): readonly string[] {
  if (field instanceof z.ZodOptional) return optionsOf(field.unwrap() as z.ZodType);
  if (field instanceof z.ZodArray) return optionsOf(field.element as z.ZodType);
  return field instanceof z.ZodEnum ? field.options.map(String) : [];
}

/** An empty member counts as absent, as an empty field does, and so does an object without members. */
function chunkingOf(value: unknown): unknown {
  const text = typeof value === 'string' ? choiceIn(['auto'], value) : undefined;
  const json = text === undefined ? value : parsedJson(text);
  if (json === undefined || typeof json !== 'object' || Array.isArray(json)) return json ?? text;
  const members = Object.entries(json ?? {})
    .map(([name, sent]) => [name, oneOfRepeated(sent, (value) => memberAsWritten(name, value))])
    .filter(([, member]) => member !== undefined);
  return members.length === 0 ? undefined : Object.fromEntries(members);
}

const memberAsWritten = (name: string, value: unknown) =>
  name === 'type' && typeof value === 'string' ? choiceIn(['server_vad'], value) : value;

/** The lists whose values have no comma, so that a comma separates them wherever it stands. */
const WITHOUT_COMMA = ['languages', 'timestamp_granularities', 'include'];

/**
 * The values of a list. One text may hold several, as a JSON array or with commas between them. A keyword may have a
 * comma, so only a text that was sent alone is divided into keywords; names and references are never divided.
 */
function listOf(name: string, field: z.ZodArray, sent: unknown): unknown[] {
  const options = optionsOf(field);
  const divides = WITHOUT_COMMA.includes(name) || (name === 'keywords' && typeof sent === 'string');
  const most = name.startsWith('known_speaker') ? BUDGETS.speakers.references : MOST_VALUES;
  const values: unknown[] = [];
  let seen = 0;
  for (const text of Array.isArray(sent) ? sent : [sent ?? []].flat()) {
    for (const value of valuesIn(text, divides)) {
      seen += 1;
      const one = typeof value === 'string' ? choiceIn(options, value) : value;
      if (isSent(one)) values.push(one);
      // A longer list would have an issue for each value that is wrong, and empty values take time as well.
      if (seen > MOST_VALUES || values.length > most)
        throw badField([name], sent, `Expected at most ${values.length > most ? most : MOST_VALUES} values`);
    }
  }
  refuseLongValues(name, values.flatMap(textsIn), maxCharacters(name));
  return values;
}

function valuesIn(text: unknown, divides: boolean): unknown[] {
  if (typeof text !== 'string') return [text];
  const json = text.trimStart().startsWith('[') ? parsedJson(text) : undefined;
  if (Array.isArray(json)) return json.map((value) => (typeof value === 'number' ? String(value) : value));
  return divides ? text.split(',').map((value) => value.trim()) : [text];
}

/** The texts in a field: the field itself, the items of a list, or the members of an object. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return Object.values(value ?? {}).filter((member) => typeof member === 'string');
}

/** @param most the most characters here; the refusal tells those of one value */
function refuseLongValues(name: string, value: unknown, most: number): void {
  const long = textsIn(value).find((text) => text.length > most);
  if (long !== undefined) throw badField([name], long, `Expected at most ${maxCharacters(name)} characters`);
}

/** What is wrong first. Where a field may be a word or an object, a fault of a member is the one to tell. */
function firstFault({ issues: [issue] }: z.ZodError): { path: PropertyKey[]; message: string } {
  if (issue === undefined) return { path: [], message: '' };
  const inner = issue.code === 'invalid_union' ? issue.errors.flat() : [];
  const fault =
    [...inner, issue].find(({ path, code }) => path.length > 0 || code === 'unrecognized_keys') ?? issue;
  const path = fault === issue ? issue.path : [...issue.path, ...fault.path];
  if (fault.code !== 'unrecognized_keys') return { path, message: fault.message };
  return { path: [...path, ...fault.keys.slice(0, 1)], message: CHUNKING_MEMBERS };
}

/** @param path the field, then the place in it that is at fault: an index of a list or a member of an object */
function badField(path: readonly PropertyKey[], value: unknown, expected: string): GatewayError {
  const [name = 'request', ...members] = path.filter((key) => typeof key !== 'number').map(String);
  const field = [name, ...members.map((member) => `[${member}]`)].join('');
  return invalidValue(field, value, expected, name);
}

const memberOf = (value: unknown, key: PropertyKey): unknown =>
  typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined;
