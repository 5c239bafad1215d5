/** What programs import: a gateway inside their process, and the text of a file. docs/node.md shows both. */
import type { z } from 'zod';
import { checkModelSettings } from './cli/model-settings.ts';
import { openEngine, quietLog } from './cli/open-engine.ts';
import { startPrivateGateway } from './cli/private-gateway.ts';
import { preload, startGateway } from './cli/start-gateway.ts';
import { askFor } from './cli/transcribe-client.ts';
import { readConfig, type Settings } from './config.ts';
import { ownBaseUrl } from './http/address.ts';
import type { diarizedSchema, jsonSchema, verboseSchema } from './http/openapi.ts';
import type { ResponseFormat, transcriptionFields } from './transcription/request.ts';

export { RequestError } from './cli/transcribe-client.ts';
export { ConfigError, type Settings } from './config.ts';

/** The path of a file of sound or video, or the bytes of one. The content decides how it is decoded. */
export type Audio = string | Uint8Array;

/**
 * The fields of `POST /v1/audio/transcriptions` (docs/api.md), but for `stream`. Switches are booleans, and lists are
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
  /** Without a slash at the end, as `http://127.0.0.1:8000`. */
  readonly url: string;
  readonly port: number;
  /**
   * The text of a file, as this gateway answers it over HTTP. A busy gateway is asked again for up to an hour.
   * @throws RequestError with the status and the kind of the error that the API gives
   */
  transcribe<F extends Fields = Record<never, never>>(
    audio: Audio,
    fields?: F,
    options?: { signal?: AbortSignal },
  ): Promise<AnswerTo<F>>;
  /** Refuses new requests, gives those under way `SVC_DRAIN_SEC` to end, and frees the models. */
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
  const { app, address } = await startGateway(config, { ...parts, crashes: { list: () => [] } });
  await preload(app, config, parts);
  const url = ownBaseUrl(app.server) ?? '';
  let closing: Promise<void> | undefined;
  const close = () => (closing ??= app.close(config.drainMs));
  return {
    ...{ url, port: address.port, close, [Symbol.asyncDispose]: close },
    transcribe: (audio, fields, options) =>
      ask({ base: url, key: config.apiKeys[0] }, audio, fields, options),
  };
}

/**
 * The text of one file, without a server that others can use. The model is loaded for this call and freed after it: for
 * several files `createGateway` and its `transcribe` are faster.
 * @param settings those of docs/configuration.md by name, which stand before those of the environment
 * @throws ConfigError for a wrong setting
 * @throws RequestError with the status and the kind of the error that the API gives
 */
export async function transcribe<F extends Fields = Record<never, never>>(
  audio: Audio,
  fields?: F,
  { settings = {}, signal }: { settings?: Settings; signal?: AbortSignal } = {},
): Promise<AnswerTo<F>> {
  const { config, ...parts } = open(settings);
  await using gateway = await startPrivateGateway(config, parts);
  return await ask(gateway, audio, fields, signal && { signal });
}

function open(settings: Settings) {
  const { config, warnings } = readConfig(undefined, settings);
  checkModelSettings(config);
  const log = quietLog(config);
  for (const warning of warnings) log.warn(warning);
  return { config, log, ...openEngine(config, log) };
}

async function ask<F extends Fields>(
  gateway: { base: string; key: string | undefined },
  audio: Audio,
  fields: F | undefined,
  { signal = new AbortController().signal }: { signal?: AbortSignal } = {},
): Promise<AnswerTo<F>> {
  const given = Object.entries(fields ?? {}).filter(([, value]) => value !== undefined && value !== null);
  const texts = given.map(([name, value]) => [
    name,
    Array.isArray(value) ? value.map(String) : toText(value),
  ]);
  const body = await askFor({ ...gateway, audio, fields: Object.fromEntries(texts), signal });
  const isText = ['text', 'srt', 'vtt'].includes(fields?.response_format ?? 'json');
  return (isText ? body : JSON.parse(body)) as AnswerTo<F>;
}

const toText = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value));
