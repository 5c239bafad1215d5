/**
 * Sends one multipart request and reads its answer. `fetch` is not used because it gives up on an answer that takes
 * five minutes.
 */
import { openAsBlob } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface Answer {
  wallMs: number;
  /** Time until the body so far contained `first`; the whole time when it never did, or was not asked for. */
  firstMs: number;
  body: string;
}

/** The clock starts with the connection and stops when the body is read. `first` marks the first segment. */
export async function upload(
  url: string,
  audio: string,
  fields: Record<string, string>,
  first?: string,
): Promise<Answer> {
  const form = new FormData();
  form.append('file', await openAsBlob(audio), 'audio.wav');
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  const encoded = new Response(form);
  const type = encoded.headers.get('content-type') ?? '';
  const bytes = Buffer.from(await encoded.arrayBuffer());

  const begin = performance.now();
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { 'content-type': type, 'content-length': bytes.length };
    request(url, { method: 'POST', headers, agent: false }, resolve).on('error', reject).end(bytes);
  });
  if (response.statusCode !== 200) {
    throw new Error(`${url} answered ${response.statusCode}: ${await text(response)}`);
  }
  let body = '';
  let firstMs: number | undefined;
  response.setEncoding('utf8');
  for await (const chunk of response) {
    body += chunk;
    if (first !== undefined && firstMs === undefined && body.includes(first)) {
      firstMs = performance.now() - begin;
    }
  }
  const wallMs = performance.now() - begin;
  return { wallMs, firstMs: firstMs ?? wallMs, body };
}
