/** Sends requests to the gateway. One list of fields makes both the request itself and the code to copy. */

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
export const apiKey = () => sessionStorage.getItem(KEY);

export const hasKey = () => apiKey() !== null;

/** @param askForKey (wrong: boolean) => Promise<string | null>; null means that the reader gives up */
export function createClient(askForKey) {
  /** @param path below the folder of the page, which a reverse proxy may have put below a path of its own */
  async function send(path, init) {
    const key = sessionStorage.getItem(KEY);
    const headers = { ...init.headers, ...(key !== null && { Authorization: `Bearer ${key}` }) };
    const response = await reach(() => fetch(path, { ...init, headers }), init.signal);
    if (response.ok) return response;
    const failure = await toFailure(response);
    if (response.status !== 401) throw failure;
    let given = await askForKey(key !== null);
    while (given !== null && !SENDABLE.test(given)) given = await askForKey(true);
    if (given === null) throw failure;
    sessionStorage.setItem(KEY, given);
    return send(path, init);
  }

  return {
    /** All models that can serve now, of all capabilities. */
    async models() {
      return (await (await send('v1/models', {})).json()).data;
    },

    /** The names of the voices; null where the speech server lists none. */
    async voices(signal) {
      const response = await send('v1/audio/voices', { signal }).catch((error) => {
        if (error.code === 'slot_busy' || signal.aborted) throw error;
        return null;
      });
      const { voices } = (await response?.json().catch(() => null)) ?? {};
      const names = Array.isArray(voices) ? voices.map((voice) => voice?.name ?? voice) : [];
      return names.length > 0 ? names : null;
    },

    /** Calls `onText` for every piece of the answer to a chat. */
    async chat(request, signal, onText) {
      const init = { ...json({ ...request, stream: true }), signal };
      const response = await send('v1/chat/completions', init);
      if (!isEventStream(response)) {
        const whole = await reach(() => response.json(), signal);
        onText(whole.choices?.[0]?.message?.content ?? '');
        return;
      }
      let isWhole = false;
      for await (const { error, choices } of readEvents(response.body, signal)) {
        if (error !== undefined) throw new RequestFailed(errorOf({ error }) ?? { message: CUT_SHORT });
        const [choice] = choices ?? [];
        if (choice?.delta?.content) onText(choice.delta.content);
        isWhole ||= Boolean(choice?.finish_reason);
      }
      if (!isWhole) throw new RequestFailed({ message: CUT_SHORT });
    },

    /** The sound of a text, in the format that the speech server prefers. */
    async speech(request, signal) {
      const response = await send('v1/audio/speech', { ...json(request), signal });
      return reach(() => response.blob(), signal);
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
  return new RequestFailed(errorOf(parsed(text)) ?? plainError(response, text) ?? fallback, retryAfterSec);
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

async function* readEvents(body, signal) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read().catch(() => {
      if (signal.aborted) throw signal.reason;
      throw new RequestFailed({ message: CUT_SHORT });
    });
    if (done) return;
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
