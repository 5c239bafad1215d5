/** Sends requests to the gateway. One list of fields makes both the request itself and the code to copy. */
import { inTab } from './storage.js';

/** @returns {[name: string, value: string][]} */
export function toFields({ model, language, translate, prompt, diarize, wordTimes, granularity }) {
  const fields = [['model', model]];
  if (language !== '') fields.push(['language', language]);
  if (prompt !== '') fields.push(['prompt', prompt]);
  if (translate) fields.push(['translate', 'true']);
  if (diarize) fields.push(['diarize', 'true']);
  if (granularity !== 'sentence') fields.push(['segment_granularity', granularity]);
  // Only verbose_json carries words, and it does not stream.
  if (!wordTimes) return [...fields, ['stream', 'true']];
  return [
    ...fields,
    ['response_format', 'verbose_json'],
    ['timestamp_granularities[]', 'word'],
    ['timestamp_granularities[]', 'segment'],
  ];
}

/** Thrown for a request that was refused or broke, with the content of the error envelope. */
export class RequestFailed extends Error {
  constructor(error, retryAfterSec) {
    super(error.message);
    this.code = error.code ?? null;
    this.status = error.status ?? null;
    this.requestId = error.request_id ?? null;
    this.heldBy = error.held_by ?? null;
    this.heldForMs = error.held_for_ms ?? 0;
    this.retryAfterSec = retryAfterSec ?? null;
  }
}

const KEY = 'voxgate-api-key';
/** What a header can carry, as every key of a gateway. A typographic quote gets in where a text is pasted. */
const SENDABLE = /^[\x20-\x7e]+$/;

/** The key of this tab; null where none was given. */
export const apiKey = () => inTab.get(KEY);

export const hasKey = () => apiKey() !== null;

/** @param askForKey (wrong: boolean) => Promise<string | null>; null means that the reader gives up */
export function createClient(askForKey) {
  /** @param path below the folder of the page, which a reverse proxy may have put below a path of its own */
  async function send(path, init) {
    const key = apiKey();
    const headers = { ...init.headers, ...(key !== null && { Authorization: `Bearer ${key}` }) };
    const response = await reach(() => fetch(path, { ...init, headers }), init.signal);
    if (response.ok) return response;
    const failure = await toFailure(response);
    if (response.status !== 401) throw failure;
    let given = await askForKey(key !== null);
    while (given !== null && !SENDABLE.test(given)) given = await askForKey(true);
    if (given === null) throw failure;
    inTab.set(KEY, given);
    return send(path, init);
  }

  /** False once the speech server has said that it has no stream. */
  let streams = true;

  return {
    /** All models that can serve now, of all capabilities. */
    async models() {
      return (await (await send('v1/models', {})).json()).data;
    },

    /** The voices as `{name, language}`, or names alone; null where the speech server lists none. */
    async voices(signal) {
      const response = await send('v1/audio/voices', { signal }).catch((error) => {
        if (error.code === 'slot_busy' || signal.aborted) throw error;
        return null;
      });
      const { voices } = (await response?.json().catch(() => null)) ?? {};
      return Array.isArray(voices) && voices.length > 0 ? voices : null;
    },

    /**
     * Calls `onText` for every piece of the answer to a chat.
     * @param on what else to hear of: `thought(text)`, where it comes apart from the answer, and `usage(usage)`
     */
    async chat(request, signal, onText, on = {}) {
      const body = { ...request, stream: true, stream_options: { include_usage: true } };
      const response = await send('v1/chat/completions', { ...json(body), signal });
      const take = ({ content, reasoning_content: thought, reasoning = thought } = {}) => {
        if (typeof reasoning === 'string' && reasoning !== '') on.thought?.(reasoning);
        if (content) onText(content);
      };
      if (!isEventStream(response)) {
        const { choices, usage } = await reach(() => response.json(), signal);
        take(choices?.[0]?.message);
        on.usage?.(usage);
        return;
      }
      let isWhole = false;
      for await (const { error, choices, usage } of readEvents(response.body, signal)) {
        if (error !== undefined) throw new RequestFailed(errorOf({ error }) ?? { message: CUT_SHORT });
        const [choice] = choices ?? [];
        take(choice?.delta);
        if (usage) on.usage?.(usage);
        isWhole ||= Boolean(choice?.finish_reason);
      }
      if (!isWhole) throw new RequestFailed({ message: CUT_SHORT });
    },

    /**
     * The sound of a text, in pieces as they are made where the speech server has a stream.
     * @returns {headers, chunks}
     */
    async speech(request, signal) {
      const init = { ...json(request), signal };
      if (streams) {
        try {
          return soundOf(await send('v1/audio/speech/stream', init), signal);
        } catch (error) {
          // Some servers stream bare samples only, and refuse the request for another format.
          if (![...NO_SUCH_PATH, 400, 422].includes(error.status)) throw error;
          streams = !NO_SUCH_PATH.includes(error.status);
        }
      }
      return soundOf(await send('v1/audio/speech', init), signal);
    },

    /** Calls `onEvent` for every event of the stream; an answer in one piece is a single `done`. */
    async transcribe(file, fields, signal, onEvent) {
      const body = new FormData();
      for (const [name, value] of fields) body.append(name, value);
      body.append('file', file, file.name);
      const response = await send('v1/audio/transcriptions', { method: 'POST', body, signal });
      onEvent({ type: 'accepted', model: response.headers.get('X-Voxgate-Model') ?? '' });
      if (!isEventStream(response)) {
        const answer = await reach(() => response.json(), signal);
        onEvent({ ...answer, type: 'transcript.text.done' });
        return;
      }
      let last = null;
      for await (const event of readEvents(response.body, signal)) {
        last = event.type;
        if (event.type === 'error') throw new RequestFailed(event.error);
        onEvent(event);
      }
      if (last !== 'transcript.text.done') throw new RequestFailed({ message: CUT_SHORT });
    },
  };
}

/** A server may have something else than POST there, such as a WebSocket. */
const NO_SUCH_PATH = [404, 405, 426, 501];

const soundOf = (response, signal) => ({
  headers: response.headers,
  chunks: readChunks(response.body, signal),
});

const CUT_SHORT = 'The connection ended before the answer did. What had arrived is kept.';

const json = (body) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});

/** Puts a network failure into words; an abort is passed on as it is. */
async function reach(attempt, signal) {
  try {
    return await attempt();
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new RequestFailed({ message: `The gateway cannot be reached (${error.message}). Is it running?` });
  }
}

const hasType = ({ headers }, type) => headers.get('Content-Type')?.startsWith(type) ?? false;

const isEventStream = (response) => hasType(response, 'text/event-stream');

async function toFailure(response) {
  const retryAfterSec = Number(response.headers.get('Retry-After')) || null;
  const text = await response.text().catch(() => '');
  const fallback = { message: `The gateway answered ${response.status} without saying why.` };
  const error = errorOf(parsed(text)) ?? plainError(response, text) ?? fallback;
  return new RequestFailed({ ...error, status: response.status }, retryAfterSec);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * The error in the answer of the gateway or of an upstream; null where none is found. OpenAI's servers and the gateway
 * have an object `error`, Ollama has a text there, and servers made with FastAPI have `detail`: a text, an object, or a
 * list of what is wrong.
 */
function errorOf(body) {
  const { error, detail } = body ?? {};
  if (typeof error?.message === 'string') return error;
  const said = [error, detail, detail?.message, detail?.[0]?.msg].find((each) => typeof each === 'string');
  return said ? { message: said } : null;
}

/** The text of an upstream that answers errors in no format, such as `CUDA out of memory`. */
function plainError(response, text) {
  const shown = text.trim().slice(0, MOST_SHOWN);
  return hasType(response, 'text/plain') && shown !== '' ? { message: shown } : null;
}

const MOST_SHOWN = 300;

/** A reader who wants no more ends the call. */
async function* readChunks(body, signal) {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        if (signal.aborted) throw signal.reason;
        throw new RequestFailed({ message: CUT_SHORT });
      });
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

async function* readEvents(body, signal) {
  let text = '';
  for await (const value of readChunks(body.pipeThrough(new TextDecoderStream()), signal)) {
    const blocks = (text + value).split(/\r?\n\r?\n/);
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split('\n').filter((line) => line.startsWith('data:'));
      const data = lines
        .map((line) => line.slice(5))
        .join('\n')
        .trim();
      if (data === '' || data === '[DONE]') continue;
      const event = parsed(data);
      if (event === null)
        throw new RequestFailed({ message: `The answer broke off: ${data.slice(0, MOST_SHOWN)}` });
      yield event;
    }
  }
}
