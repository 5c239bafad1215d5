/**
 * Sends one multipart request and reads its answer. `fetch` is not used because it gives up on an answer that takes
 * five minutes.
 */
import { openAsBlob } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';

export interface Answer {
  wallMs: number;
  /** Time until the body so far contained `first`; the whole time when it never did, or was not asked for. */
  firstMs: number;
  status: number;
  body: string;
}

/** Path of a file, or its bytes. */
type Audio = string | Buffer;
type Fields = Readonly<Record<string, string>>;

/** Asks the gateway at an address. @throws Error where it has not transcribed the audio */
export function transcribe(base: string, audio: Audio, fields: Fields, first?: string): Promise<Answer> {
  return upload(transcriptionsAt(base), audio, fields, first);
}

export const transcriptionsAt = (base: string) => `${base.replace(/\/$/, '')}/v1/audio/transcriptions`;

/** @throws Error where the answer is not 200 */
export async function upload(url: string, audio: Audio, fields: Fields, first?: string): Promise<Answer> {
  const answer = await send(url, audio, fields, first);
  if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${answer.body}`);
  return answer;
}

/** The clock starts with the connection and stops when the body is read. `first` marks the first segment. */
export async function send(url: string, audio: Audio, fields: Fields, first?: string): Promise<Answer> {
  const form = new FormData();
  const file = typeof audio === 'string' ? await openAsBlob(audio) : new Blob([new Uint8Array(audio)]);
  form.append('file', file, 'audio.wav');
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  const encoded = new Response(form);
  const type = encoded.headers.get('content-type') ?? '';
  const bytes = Buffer.from(await encoded.arrayBuffer());

  const begin = performance.now();
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { 'content-type': type, 'content-length': bytes.length };
    request(url, { method: 'POST', headers, agent: false }, resolve).on('error', reject).end(bytes);
  });
  let body = '';
  let firstMs: number | undefined;
  response.setEncoding('utf8');
  for await (const chunk of response) {
    body += chunk;
    if (first !== undefined && body.includes(first)) firstMs ??= performance.now() - begin;
  }
  const wallMs = performance.now() - begin;
  return { status: response.statusCode ?? 0, wallMs, firstMs: firstMs ?? wallMs, body };
}
