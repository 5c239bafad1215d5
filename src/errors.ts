/**
 * Every failure that the gateway can answer with. A code has one kind, one HTTP status and one sentence (contract 7).
 * docs/errors.md lists the same table, and a test compares the two. `error-handler.ts` turns a failure into a response.
 */

/** The HTTP status of each kind, and its `error.type` in OpenAI's API. Clients branch on the kind. */
export const KINDS = {
  malformed: { status: 400, type: 'invalid_request_error' },
  unauthorized: { status: 401, type: 'authentication_error' },
  forbidden: { status: 403, type: 'permission_error' },
  not_found: { status: 404, type: 'invalid_request_error' },
  method_not_allowed: { status: 405, type: 'invalid_request_error' },
  too_large: { status: 413, type: 'invalid_request_error' },
  rate_limited: { status: 429, type: 'rate_limit_error' },
  cancelled: { status: 499, type: 'cancelled' },
  internal: { status: 500, type: 'server_error' },
  upstream: { status: 502, type: 'server_error' },
  network: { status: 503, type: 'server_error' },
} as const;

export type ErrorKind = keyof typeof KINDS;
export const ERROR_KINDS = Object.keys(KINDS) as [ErrorKind, ...ErrorKind[]];

/** The statuses whose meaning is the same at an upstream and at the gateway. */
const KIND_OF_ANSWER: Readonly<Record<number, ErrorKind>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  413: 'too_large',
  429: 'rate_limited',
  503: 'network',
};

/** The kind of an error that an upstream answered. @param status 400 or more */
const kindOfAnswer = (status: number): ErrorKind =>
  KIND_OF_ANSWER[status] ?? (status < 500 ? 'malformed' : 'upstream');

/**
 * @param says what is wrong, then what to do about it, without a full stop. `{names}` are filled in. The sentence is shown
 *   to clients, so it holds no path of the server.
 * @param status one of the same class that says more than the kind's (RFC 9110, section 15.5)
 */
const row = <const Sentence extends string>(kind: ErrorKind, says: Sentence, status?: number) => ({
  kind,
  says,
  status: status ?? KINDS[kind].status,
});

/** OpenAI's `error.code` for each failure. */
export const ERRORS = {
  // The uploaded file.
  missing_file: row(
    'malformed',
    'No file was sent as the multipart field "{field}", with a file name{other}',
  ),
  empty_file: row('malformed', 'The file is empty'),
  unsupported_format: row('malformed', 'The format of the file is not supported: {why}'),
  no_audio_stream: row('malformed', 'The file has no audio stream'),
  empty_audio: row('malformed', 'The file holds no audio samples'),
  undecodable_audio: row('malformed', 'The audio cannot be decoded: {why}'),
  audio_too_long: row(
    'malformed',
    'The audio is longer than the {maxSec} s that this server accepts (SVC_MAX_AUDIO_SEC)',
  ),
  repeated_audio: row(
    'malformed',
    'The file repeats the same bytes, so it would play longer than what was sent',
  ),
  file_too_large: row('too_large', 'The upload is larger than {maxMb} MiB (SVC_MAX_UPLOAD_MB)'),
  // The fields of a request.
  invalid_value: row('malformed', 'Field "{field}" cannot be {value}: {expected}'),
  unknown_model: row('malformed', 'Unknown model "{model}"; the nearest are {nearest}'),
  unsupported_language: row('malformed', '{model} does not know {name} ({language}); it knows {known}'),
  unsupported_translate: row('malformed', '{model} does not translate; {others} do'),
  unsupported_alignment: row('malformed', '{model} does not align text; {others} do'),
  // Alignments.
  text_too_long: row(
    'malformed',
    'The text is too long for its audio: {syllables} syllables for {seconds} s of speech',
  ),
  no_speech: row('malformed', 'There is no speech in the audio to align the text with'),
  // Live sessions.
  input_audio_buffer_commit_empty: row(
    'malformed',
    'There is no speech to commit: send 0.1 s of audio first, or let the server find the turns',
  ),
  input_audio_buffer_full: row(
    'malformed',
    'The buffer holds {seconds} s of uncommitted audio; commit or clear it',
  ),
  unknown_event: row('malformed', 'There is no client event "{event}" in this session'),
  conversation_already_has_active_response: row(
    'malformed',
    'The conversation already has an active response: {id}',
  ),
  conversation_full: row(
    'malformed',
    'The conversation is full ({items} items, {bytes} bytes), and its session has "truncation": "disabled"',
  ),
  response_cancel_not_active: row('malformed', 'Cancellation failed: no active response found'),
  item_create_duplicate_item_id: row('malformed', 'The conversation has an item with the id "{id}"'),
  item_create_invalid_previous_item_id: row(
    'malformed',
    'The conversation has no item "{id}" to put an item behind',
  ),
  invalid_tool_call_id: row('malformed', "Tool call ID '{id}' not found in conversation"),
  item_retrieve_invalid_item_id: row('malformed', 'The conversation has no item "{id}"'),
  item_delete_invalid_item_id: row('malformed', 'The conversation has no item "{id}" to delete'),
  item_truncate_invalid_item_id: row(
    'malformed',
    'The conversation has no message "{id}" with audio of the assistant',
  ),
  session_idle: row('cancelled', 'The client sent no audio for {seconds} s'),
  session_expired: row('cancelled', 'The session has reached the limit of {hours} h'),
  upgrade_required: row(
    'malformed',
    'This address is a WebSocket, and the request has no Upgrade header: use a WebSocket client; a reverse proxy has to pass Upgrade on (docs/proxies.md)',
    426,
  ),
  too_many_sessions: row('network', 'Too many live sessions are open (SVC_MAX_LIVE_SESSIONS)'),
  // Wyoming.
  invalid_message: row('malformed', 'The message cannot be read: {why}'),
  unexpected_event: row('malformed', 'The event "{event}" comes {when}'),
  speech_too_long: row(
    'malformed',
    'No audio-stop came within {seconds} s of audio; send longer audio over HTTP',
  ),
  // The body and its form.
  invalid_content_type: row('malformed', 'Send a multipart/form-data body with the field "{field}"'),
  invalid_form: row('malformed', 'The form cannot be read: {why}'),
  body_too_large: row('too_large', 'The body is too large'),
  unsupported_media_type: row('malformed', 'The {what} of the body is not supported: {expected}', 415),
  // The request itself.
  bad_request: row('malformed', 'The request cannot be understood'),
  request_timeout: row('malformed', 'The request did not arrive in time', 408),
  precondition_failed: row('malformed', 'The file does not match the condition', 412),
  range_not_satisfiable: row('malformed', 'The file has no such range', 416),
  expectation_failed: row('malformed', 'The only supported expectation is Expect: 100-continue', 417),
  headers_too_large: row('malformed', 'The request headers are too large', 431),
  // Access and addresses.
  invalid_api_key: row('unauthorized', 'A valid key is needed: Authorization: Bearer <key> (SVC_API_KEY)'),
  invalid_client_secret: row(
    'unauthorized',
    'A client secret opens only /v1/realtime, and expires: POST /v1/realtime/client_secrets makes another',
  ),
  too_many_keys: row(
    'unauthorized',
    'Wrong key, after too many wrong keys from this address; try again in {seconds} s',
    429,
  ),
  cross_site: row(
    'forbidden',
    'Pages from other sites may not do this (SVC_CORS_ORIGINS lists those that may)',
  ),
  unknown_host: row('forbidden', 'The Host header does not name this server (SVC_ALLOWED_HOSTS adds names)'),
  model_not_allowed: row(
    'forbidden',
    'Requests may not use {model} on this server (SVC_MODEL_ALLOW lists the models they may use)',
  ),
  not_found: row('not_found', 'There is no {method} {path}{hint}'),
  model_not_found: row('not_found', 'No model "{model}" can serve requests here'),
  capture_not_found: row(
    'not_found',
    'There is no capture of this request on disk: it was never written, or it was deleted',
  ),
  not_replayable: row('malformed', 'The capture cannot be replayed: {why}'),
  method_not_allowed: row('method_not_allowed', '{method} is not allowed here; use {allowed}'),
  // The client is gone, so these appear only in the log.
  client_left: row('cancelled', 'The client closed the request'),
  client_stalled: row('cancelled', 'The client {what}'),
  // The slot.
  slot_busy: row('network', 'The inference slot is busy ({holder}); retry in {seconds} s'),
  held_too_long: row('network', 'The request held the slot for more than {seconds} s (SVC_MAX_HOLD_SEC)'),
  overloaded: row('network', 'Too many requests are being received at once'),
  storage_unavailable: row('network', 'The server cannot store the upload: its disk is full or not writable'),
  stopped_by_operator: row('network', 'The operator stopped this request'),
  shutting_down: row('network', 'The gateway is shutting down'),
  // Engine and weights.
  out_of_memory: row('network', 'The server has run out of memory, threads or open files for this request'),
  model_too_large: row(
    'network',
    '{model} needs about {neededMb} MiB, and models may use {maxMb} MiB (SVC_MODEL_MEMORY_MB)',
  ),
  backend_unavailable: row(
    'network',
    'The {provider} backend is not available: the native engine could not be loaded; the start log says why',
  ),
  model_not_installed: row('network', 'The weights of {model} are not on this server: {why}'),
  download_failed: row('network', 'The weights of {model} could not be downloaded'),
  not_importable: row('malformed', 'The weights cannot be imported: {why}'),
  // The upstreams.
  upstream_unreachable: row('network', 'The {upstream} cannot be reached ({why}): {hint}'),
  upstream_failed: row('upstream', 'The {upstream} failed: {why}'),
  /** Kind and status are those of the answer, and the members of a JSON object stay. */
  upstream_error: row('upstream', 'The {upstream} answered {status}: {why}'),
  upstream_timeout: row('upstream', 'The {upstream} did not answer in time: {why}'),
  internal_error: row('internal', 'The gateway failed; its log has the details under the request id'),
};

export type ErrorCode = keyof typeof ERRORS;
/** The codes as a non-empty tuple, which is the form that zod's `enum` takes. */
export const ERROR_CODES = Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]];

type Blanks<Sentence> = Sentence extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Blanks<Rest>
  : never;
/** The values for the `{names}` in a code's sentence. */
type Values<Code extends ErrorCode> = Record<Blanks<(typeof ERRORS)[Code]['says']>, string | number>;

/** An error that an upstream answered with. */
export interface UpstreamAnswer {
  /** 400 or more. */
  status: number;
  /** The members of its JSON object, which the client gets as well; those of `error` stand before the gateway's own. */
  members: Readonly<Record<string, unknown>> & { readonly error: Readonly<Record<string, unknown>> };
}

export interface GatewayErrorOptions {
  /** Where the failure arose: `voxgate` itself (the default), a model's provider, or an upstream (contract 2.1.3). */
  provider?: string;
  /** The request field at fault, as OpenAI's `error.param`. */
  param?: string;
  /** Seconds for `Retry-After`; only refusals that a later retry may get past have it. */
  retryAfterSec?: number;
  /** For `Accept-Encoding`: the codings in which a body may come (RFC 9110, section 15.5.16). */
  acceptEncoding?: string;
  /** Further members of the `error` object; `heldBy` is `held_by` on the wire. */
  details?: Record<string, string | number>;
  /** What an upstream answered, in place of the kind and the status of the code. */
  answered?: UpstreamAnswer;
  /** Only the log shows the cause, so it may name paths and quote a library. */
  cause?: unknown;
}

/** What the client sent, cut to `maxCharacters` UTF-16 units so that it fits into a message. */
export function excerpt(sent: string, maxCharacters = 80): string {
  return sent.length > maxCharacters ? `${sent.slice(0, maxCharacters)}…` : sent;
}

export class GatewayError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'GatewayError';
  readonly code: Code;
  readonly kind: ErrorKind;
  readonly status: number;
  readonly provider: string;
  readonly param: string | null;
  readonly retryAfterSec: number | undefined;
  readonly acceptEncoding: string | undefined;
  readonly details: Readonly<Record<string, string | number>>;
  readonly answered: UpstreamAnswer | undefined;

  constructor(code: Code, values: Values<Code>, options: GatewayErrorOptions = {}) {
    const { kind, says, status } = ERRORS[code];
    // A refusal is identified by its code. Collecting a stack for each would be the most expensive part of refusing,
    // and refusals are most frequent when the gateway has the least time.
    const { stackTraceLimit } = Error;
    if (kind !== 'internal') Error.stackTraceLimit = 0;
    super(fill(says, values), options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    const { answered } = options;
    this.answered = answered;
    this.kind = answered === undefined ? kind : kindOfAnswer(answered.status);
    this.status = answered?.status ?? status;
    this.provider = options.provider ?? 'voxgate';
    this.param = options.param ?? null;
    this.retryAfterSec = options.retryAfterSec;
    this.acceptEncoding = options.acceptEncoding;
    this.details = options.details ?? {};
  }
}

function fill(sentence: string, values: Readonly<Record<string, string | number>>): string {
  return sentence.replace(/\{(\w+)\}/g, (_blank, name: string) => String(values[name]));
}

/** What the system answers where this process, or all of them, have used up its memory, threads or open files. */
const USED_UP = new Set(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE']);

export const isUsedUp = (error: unknown) => USED_UP.has((error as NodeJS.ErrnoException | null)?.code ?? '');

/** The message and those of its causes. They may name paths, so they go to the log or a terminal, never to a client. */
export function fullMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${fullMessage(error.cause)}`;
}

/**
 * As `fullMessage`, for people who read a terminal: an error of the system names its path first, without the names that
 * the system has for errors and calls.
 */
export function inWords(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const says = ofSystem(error) ?? error.message;
  return error.cause === undefined ? says : `${says}: ${inWords(error.cause)}`;
}

/** Null for an error that is not the system's. Its message is `EACCES: permission denied, open '/path'`. */
function ofSystem({ code, path, syscall, message }: NodeJS.ErrnoException): string | null {
  if (code === undefined || syscall === undefined || !message.startsWith(`${code}: `)) return null;
  const says = message.slice(code.length + 2).split(`, ${syscall}`)[0] ?? '';
  return path === undefined ? says : `${path}: ${says}`;
}

/**
 * The `invalid_value` error for a field that cannot hold what was sent.
 * @param field the name as it was written, with the member at fault: `chunking_strategy[threshold]`
 * @param expected a sentence that says what is allowed
 * @param param the name of the field alone, where `field` names a member of it
 */
export function invalidValue(field: string, value: unknown, expected: string, param = field): GatewayError {
  return new GatewayError('invalid_value', { field, value: describe(value), expected }, { param });
}

/** The result is short for any value, because a list may have millions of items and an object thousands of levels. */
function describe(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(excerpt(value));
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'object' && value !== null) return 'an object';
  return value === undefined ? 'absent' : String(value);
}
