/** A client of `/v1/realtime` (OpenAI's Realtime API, transcription sessions) for the terminal. */
import { once } from 'node:events';
import { WebSocket } from 'ws';
import type { LiveInput } from './live-audio.ts';

/** An event of the server; the fields depend on the type. */
export interface ServerEvent {
  type: string;
  item_id?: string;
  delta?: string;
  transcript?: string;
  error?: { code?: string | null; message?: string };
}

export interface LiveClientOptions {
  /** The gateway, as `http://host:port`. */
  base: string;
  key: string | undefined;
  model: string | undefined;
  language: string | undefined;
  delay: string | undefined;
  onEvent(event: ServerEvent): void;
}

const PREFIX = 'conversation.item.input_audio_transcription.';
/** How long the last texts may take after the audio has ended. */
const LAST_TEXT_MS = 60_000;
const OPEN_MS = 10_000;

/**
 * Sends the audio as it comes, and resolves when it has ended and every utterance of it has its text.
 * @returns the messages of the utterances that failed
 * @throws Error when the gateway cannot be reached, refuses, or ends the session
 */
export async function hearLive(input: LiveInput, options: LiveClientOptions): Promise<string[]> {
  try {
    const socket = connect(options);
    return await hearThrough(socket, input, options).finally(() => socket.terminate());
  } finally {
    input.stop();
  }
}

async function hearThrough(
  socket: WebSocket,
  input: LiveInput,
  options: LiveClientOptions,
): Promise<string[]> {
  const failures: string[] = [];
  const ended = new Promise<never>((_, reject) => {
    socket.on('close', (code, reason) =>
      reject(new Error(`The gateway ended the session: ${String(reason) || `close code ${code}`}`)),
    );
  });
  ended.catch(() => undefined); // after the last text it is expected
  /** Utterances that have ended and have no text yet. */
  let open = 0;
  let updates = 0;
  let settled = () => {};

  socket.on('message', (data) => {
    const event = JSON.parse(String(data)) as ServerEvent;
    options.onEvent(event);
    const { type, error } = event;
    if (type === 'session.updated') updates += 1;
    if (type === 'input_audio_buffer.committed') open += 1;
    if (type === `${PREFIX}completed` || type === `${PREFIX}failed`) open -= 1;
    // The last commit finds nothing when the last utterance had ended by itself.
    if (error && error.code !== 'input_audio_buffer_commit_empty') failures.push(error.message ?? type);
    settled();
  });

  const send = (event: object) =>
    new Promise<void>((resolve, reject) => {
      socket.send(JSON.stringify(event), (error) => (error ? reject(error) : resolve()));
    });
  const { model, language, delay } = options;
  const format = { type: 'audio/pcm', rate: input.rate };
  const session = {
    type: 'transcription',
    audio: { input: { format, transcription: { model, language, delay } } },
  };
  await opened(socket, options.base);
  await send({ type: 'session.update', session });
  for await (const bytes of until(ended, input.bytes)) {
    // The callback of `send` comes when the bytes have left, so a slow gateway slows the reading.
    await Promise.race([ended, send({ type: 'input_audio_buffer.append', audio: bytes.toString('base64') })]);
  }
  await send({ type: 'input_audio_buffer.commit' });
  await send({ type: 'session.update', session: { type: 'transcription' } }); // answered after the commit is
  const all = new Promise<void>((resolve) => {
    settled = () => open === 0 && updates === 2 && resolve();
  });
  await Promise.race([all, ended, tooLate()]);
  return failures;
}

/** The bytes, until `ended` rejects. */
async function* until(ended: Promise<never>, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const iterator = bytes[Symbol.asyncIterator]();
  for (;;) {
    const next = await Promise.race([ended, iterator.next()]);
    if (next.done) return;
    yield next.value;
  }
}

function tooLate(): Promise<never> {
  return new Promise((_, reject) => {
    const late = new Error(`The last text did not come within ${LAST_TEXT_MS / 1000} s`);
    setTimeout(() => reject(late), LAST_TEXT_MS).unref();
  });
}

function connect({ base, key, model }: LiveClientOptions): WebSocket {
  const url = new URL('/v1/realtime?intent=transcription', base);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  if (model !== undefined) url.searchParams.set('model', model);
  const headers = key === undefined ? {} : { Authorization: `Bearer ${key}` };
  const socket = new WebSocket(url, { headers, handshakeTimeout: OPEN_MS });
  socket.on('error', () => undefined); // `opened` tells it, and later on `close` follows
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
    response.on('end', () =>
      socket.emit('error', new Error(refusalIn(body) ?? `status ${response.statusCode}`)),
    );
  });
  try {
    await once(socket, 'open');
  } catch (error) {
    throw new Error(`Cannot hear through ${base}: ${(error as Error).message || 'nothing answers there'}`);
  }
}

function refusalIn(body: string): string | undefined {
  try {
    return (JSON.parse(body) as { error?: { message?: string } }).error?.message;
  } catch {
    return undefined;
  }
}
