/** What programs import: a gateway inside their process, and the text of a file. docs/node.md shows both. */
import { fileURLToPath } from 'node:url';
import { inspect, types } from 'node:util';
import type { z } from 'zod';
import { ownBaseUrl } from './address.ts';
import { callLine } from './cli/call-line.ts';
import { checkModelSettings } from './cli/model-settings.ts';
import { openEngine, quietLog } from './cli/open-engine.ts';
import { type Question, RequestError } from './cli/question.ts';
import { preload, startGateway } from './cli/start-gateway.ts';
import { askFor } from './cli/transcribe-client.ts';
import { startTranscriber } from './cli/transcriber.ts';
import { ConfigError, readConfig, type Settings } from './config/config.ts';
import { GatewayError } from './errors.ts';
import type { diarizedSchema, jsonSchema, verboseSchema } from './http/openapi/openapi.ts';
import type { ResponseFormat } from './transcription/request.ts';
import { isTruthy } from './truthy.ts';
import type { transcriptionFields } from './wire/request.ts';

export { ConfigError, RequestError, type Settings };

/**
 * A file of sound or video: its path, its `file:` URL, or its bytes. The content decides how it is decoded. Bytes are
 * copied at once.
 */
export type Audio = string | URL | Blob | ArrayBufferView | ArrayBuffer | SharedArrayBuffer;

/**
 * The fields of `POST /v1/audio/transcriptions` (docs/transcription.md), but for `stream`. Switches are booleans, and lists are
 * arrays.
 */
export type Fields = { readonly [Name in FieldName]?: FieldValue<(typeof transcriptionFields)[Name]> };
type FieldName = Exclude<keyof typeof transcriptionFields, 'stream'>;
type FieldValue<Field extends z.ZodType> = z.input<Field> | Extract<z.output<Field>, boolean>;

/** The answers of the API by `response_format`. All times are seconds from the start of the audio. */
export interface Answers {
  json: z.output<typeof jsonSchema>;
  verbose_json: z.output<typeof verboseSchema>;
  diarized_json: z.output<typeof diarizedSchema>;
  text: string;
  srt: string;
  vtt: string;
}

/** Without a `response_format` the answer is that of `json`. */
export type AnswerTo<F extends Fields> = 'response_format' extends keyof F
  ? AnswerIn<F['response_format']>
  : Answers['json'];
/** Where the type allows several formats, the answers in all of them. */
type AnswerIn<Format> = Format extends ResponseFormat ? Answers[Format] : Answers['json'];

export interface Gateway extends AsyncDisposable {
  /** Without a slash at the end, as `http://127.0.0.1:8000`; `unix:` and a path at a Unix socket. */
  readonly url: string;
  /** 0 at a Unix socket. */
  readonly port: number;
  /**
   * The text of a file, as this gateway answers it over HTTP. Many calls may be made at once: they are sent one after
   * the other, in their order. A gateway that others keep busy is asked again for up to an hour.
   * @throws RequestError with the status and the kind of the error that the API gives; after `close` that of a gateway
   *   that is shutting down
   * @throws TypeError for an argument of a wrong type
   * @throws `signal.reason` after an abort
   */
  transcribe<F extends Fields = Record<never, never>>(
    audio: Audio,
    fields?: F,
    options?: { signal?: AbortSignal },
  ): Promise<AnswerTo<F>>;
  /** Refuses new requests and calls that wait, gives those under way `SVC_DRAIN_SEC` to end, and frees the models. */
  close(): Promise<void>;
}

/**
 * Starts a gateway in this process; it serves over HTTP once the promise resolves. It leaves signals and crashes to the
 * program, and logs what is wrong to standard error (`SVC_LOG_LEVEL`).
 * @param settings those of docs/configuration.md by name, which stand before those of the environment; port 0 is a free one
 * @throws ConfigError for a wrong setting
 * @throws Error when it cannot listen
 */
export async function createGateway(settings: Settings = {}): Promise<Gateway> {
  const { config, ...parts } = open(settings);
  const { app, port } = await startGateway(config, { ...parts, crashes: { list: () => [] } });
  await preload(app, config, parts);
  const url = ownBaseUrl(app.server, config.host) ?? '';
  const line = callLine();
  let closing: Promise<void> | undefined;
  const close = () => {
    line.close(shuttingDown()); // another program may get the port, and must get neither the audio nor the key
    closing ??= app.close(config.drainMs);
    return closing;
  };
  return {
    url,
    port,
    close,
    [Symbol.asyncDispose]: close,
    async transcribe(audio, fields, { signal } = {}) {
      const asked = { base: url, key: config.apiKeys[0], ...question(audio, fields, signal) };
      const body = await line.inTurn(asked.signal, (until) => askFor({ ...asked, until }));
      return answerOf(asked.fields, body);
    },
  };
}

/**
 * The text of one file, without a server that others can use. The model is loaded for this call and freed after it: for
 * several files `createGateway` and its `transcribe` are faster.
 * @param settings those of docs/configuration.md by name, which stand before those of the environment
 * @throws ConfigError for a wrong setting
 * @throws RequestError with the status and the kind of the error that the API gives
 * @throws TypeError for an argument of a wrong type, before a model is loaded
 * @throws `signal.reason` after an abort
 */
export async function transcribe<F extends Fields = Record<never, never>>(
  audio: Audio,
  fields?: F,
  { settings = {}, signal }: { settings?: Settings; signal?: AbortSignal } = {},
): Promise<AnswerTo<F>> {
  const asked = question(audio, fields, signal);
  asked.signal.throwIfAborted();
  const { config, ...parts } = open(settings);
  await using transcriber = await startTranscriber(config, parts);
  return answerOf(asked.fields, await transcriber.ask(asked));
}

function open(settings: Settings) {
  const texts = givenIn('settings', settings).map(([name, value]) => {
    if (!isPlain(value)) throw new ConfigError(`${name} cannot be ${shown(value)}: ${EXPECTED}`);
    return [name, value];
  });
  const { config, warnings } = readConfig(undefined, Object.fromEntries(texts));
  checkModelSettings(config);
  const log = quietLog(config);
  for (const warning of warnings) log.warn(warning);
  return { config, log, ...openEngine(config, log) };
}

/** What a program asks a gateway. One in JavaScript may give anything, and most things have a text that would be sent. */
function question(audio: Audio, fields: Fields | undefined, signal = new AbortController().signal) {
  const texts = givenIn('fields', fields).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.map((one) => textOf(name, one)) : textOf(name, value),
  ]);
  const { stream = 'off', ...sent } = Object.fromEntries(texts);
  if (isTruthy(`${stream}`))
    throw new TypeError('stream cannot be on: the answer comes as a whole, and in parts over HTTP only');
  return { audio: contentOf(audio), fields: sent as Question['fields'], signal };
}

function answerOf<Answer>(fields: Question['fields'], body: string): Answer {
  const isText = ['text', 'srt', 'vtt'].includes(fields.response_format as string);
  return (isText ? body : JSON.parse(body)) as Answer;
}

/** The answer of a gateway that is closed, which cannot give it any more. */
function shuttingDown(): RequestError {
  const { status, kind, message } = new GatewayError('shutting_down', {});
  return new RequestError(status, JSON.stringify({ error: { kind, message } }));
}

function contentOf(audio: Audio): Question['audio'] {
  if (typeof audio === 'string' || audio instanceof Blob) return audio;
  if (audio instanceof URL) return fileURLToPath(audio);
  if (types.isAnyArrayBuffer(audio) || ArrayBuffer.isView(audio)) return new Blob([audio as ArrayBuffer]);
  throw new TypeError(`The audio cannot be ${shown(audio)}: expected a path, a file: URL, a Blob or bytes`);
}

/** What has a value. Null means "not given", as undefined does. */
function givenIn(what: string, values: object | undefined): [string, unknown][] {
  if (typeof (values ?? {}) !== 'object' || Array.isArray(values))
    throw new TypeError(`The ${what} cannot be ${shown(values)}: expected an object`);
  return Object.entries(values ?? {}).filter(([, value]) => value !== undefined && value !== null);
}

function textOf(field: string, value: unknown): string {
  if (isPlain(value)) return String(value);
  if (field === 'chunking_strategy' && typeof value === 'object') return JSON.stringify(value);
  throw new TypeError(`${field} cannot be ${shown(value)}: ${EXPECTED}`);
}

const isPlain = (value: unknown) => ['string', 'number', 'boolean'].includes(typeof value);
const EXPECTED = 'expected a text, a number or a boolean';
/** A value in an error, where an object is only named. */
const shown = (value: unknown) => inspect(value, { depth: -1 });
