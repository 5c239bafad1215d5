/** A client of `/v1/realtime` (OpenAI's Realtime API, transcription sessions) for the terminal. */
import { once } from 'node:events';
import { connect as connectSocket } from 'node:net';
import { WebSocket } from 'ws';
import { onAbort } from '../abort.ts';
import { reachedAt } from '../address.ts';
import { BUDGETS, type Budgets } from '../limits/budgets.ts';
import { parsedJson } from '../parsed-json.ts';
import type { LiveInput } from './live-audio.ts';
import { unreached } from './unreached.ts';

/** An event of the server; the fields depend on the type. */
export interface ServerEvent {
  type: string;
  item_id?: string;
  delta?: string;
  transcript?: string;
  /** Who says a segment; only in sessions that tell speakers apart. */
  speaker?: string;
  text?: string;
  error?: { code?: string | null; message?: string };
}

export interface LiveClientOptions {
  /** The gateway, as `http://host:port` or `unix:/path`. */
  base: string;
  key: string | undefined;
  model: string | undefined;
  language: string | undefined;
  delay: string | undefined;
  onEvent(event: ServerEvent): void;
  /** Called with the message of each utterance that has failed. */
  onFailure(message: string): void;
}

const PREFIX = 'conversation.item.input_audio_transcription.';

type Waits = Budgets['liveClient'];

/**
 * Sends the audio as it comes, and resolves when it has ended and every utterance of it has its text or has failed.
 * @throws Error when the gateway cannot be reached, refuses, falls silent or ends the session
 */
export async function transcribeLive(
  input: LiveInput,
  options: LiveClientOptions,
  waits: Waits = BUDGETS.liveClient,
): Promise<void> {
  const over = new AbortController();
  try {
    const socket = connect(options, waits.openMs);
    // Both the reading and the sending end by this, so no await below has to be raced for hours.
    onAbort(over.signal, () => {
      socket.terminate();
      input.stop();
    });
    socket.on('close', (code, reason) =>
      over.abort(new Error(`The gateway ended the session: ${String(reason) || `close code ${code}`}`)),
    );
    const heartbeat = watch(socket, waits, (why) => over.abort(why));
    await transcribeOver(socket, input, options, waits, over).finally(() => clearInterval(heartbeat));
  } finally {
    over.abort();
    input.stop();
  }
}

async function transcribeOver(
  socket: WebSocket,
  input: LiveInput,
  options: LiveClientOptions,
  waits: Waits,
  over: AbortController,
): Promise<void> {
  /** Utterances that have ended and have no text yet. */
  let open = 0;
  let updates = 0;
  let settle = () => {};
  onAbort(over.signal, () => settle());

  function take(event: ServerEvent): void {
    options.onEvent(event);
    const { type, error } = event;
    if (type === 'session.updated') updates += 1;
    if (type === 'input_audio_buffer.committed') open += 1;
    if (type === `${PREFIX}completed` || type === `${PREFIX}failed`) open -= 1;
    // With its settings refused, the session would hear the audio at another rate or in another language.
    if (error && updates === 0) over.abort(new Error(error.message ?? type));
    // The last commit finds nothing when the last utterance had ended by itself.
    else if (error && error.code !== 'input_audio_buffer_commit_empty')
      options.onFailure(error.message ?? type);
    settle();
  }
  socket.on('message', (data) => {
    try {
      take(JSON.parse(String(data)) as ServerEvent);
    } catch {
      over.abort(new Error(`${options.base} does not speak the Realtime API`));
    }
  });
  /** @throws the reason why the session is over, or an Error with `late` */
  const until = (isSo: () => boolean, ms: number, late: string) =>
    new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => over.abort(new Error(late)), ms);
      settle = () => {
        if (over.signal.aborted) reject(over.signal.reason);
        else if (isSo()) resolve();
        else return;
        clearTimeout(timer);
      };
      settle();
    });
  // The callback comes when the bytes have left, so a slow gateway slows the reading. Its error is the end of the
  // session, which has its own sentence.
  const send = (event: object) =>
    new Promise<void>((resolve) => socket.send(JSON.stringify(event), () => resolve()));

  await opened(socket, options.base);
  const { model, language, delay } = options;
  const format = { type: 'audio/pcm', rate: input.rate };
  const audio = { input: { format, transcription: { model, language, delay } } };
  await send({ type: 'session.update', session: { type: 'transcription', audio } });
  await until(() => updates === 1, waits.openMs, 'The gateway did not accept the settings in time');
  for await (const bytes of input.bytes) {
    over.signal.throwIfAborted();
    await send({ type: 'input_audio_buffer.append', audio: bytes.toString('base64') });
  }
  await send({ type: 'input_audio_buffer.commit' });
  await send({ type: 'session.update', session: { type: 'transcription' } }); // the gateway answers in order, so this answer shows that the commit was handled
  const late = `The last text did not come within ${waits.lastTextMs / 1000} s`;
  await until(() => updates === 2 && open === 0, waits.lastTextMs, late);
}

/** Pings, and calls `onSilence` when nothing has come for too long: a connection may be dead without an error (half-open). */
function watch(
  socket: WebSocket,
  { pingMs, silenceMs }: Waits,
  onSilence: (why: Error) => void,
): NodeJS.Timeout {
  let lastSignAt = performance.now();
  for (const sign of ['open', 'message', 'ping', 'pong'])
    socket.on(sign, () => {
      lastSignAt = performance.now();
    });
  return setInterval(() => {
    if (performance.now() - lastSignAt > silenceMs)
      onSilence(new Error(`The gateway has said nothing for ${silenceMs / 1000} s`));
    else if (socket.readyState === WebSocket.OPEN) socket.ping();
  }, pingMs);
}

function connect({ base, key, model }: LiveClientOptions, handshakeTimeout: number): WebSocket {
  const { url: origin, socketPath } = reachedAt(base);
  const url = new URL(`${origin}/v1/realtime?intent=transcription`);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  if (model !== undefined) url.searchParams.set('model', model);
  const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
  const createConnection = socketPath === undefined ? undefined : () => connectSocket(socketPath);
  const socket = new WebSocket(url, { headers, handshakeTimeout, createConnection });
  socket.on('error', () => undefined); // `opened` rejects with it; once the socket is open, `close` follows every error
  return socket;
}

/** Resolves when the gateway has accepted the session. @throws Error that says why it has not */
async function opened(socket: WebSocket, base: string): Promise<void> {
  socket.on('unexpected-response', (_request, response) => {
    let body = '';
    response.setEncoding('utf8');
    response.on('data', (text) => {
      body = `${body}${text}`.slice(0, 10_000);
    });
    response.on('end', () => {
      const { error } = Object(parsedJson(body));
      socket.emit('error', new Error(error?.message ?? `status ${response.statusCode}`));
    });
  });
  try {
    await once(socket, 'open');
  } catch (error) {
    const why = (error as Error).message || 'nothing answers there';
    throw new Error(unreached(error, base) ?? `Cannot hear through ${base}: ${why}`);
  }
}
