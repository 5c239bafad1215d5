/**
 * Sends a captured request to a gateway again, and compares the new answer with the captured one. Bodies may be as large
 * as an upload, so neither of them is ever in memory as a whole.
 */
import { createReadStream } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { z } from 'zod';
import { reachedAt, withoutTrailingSlashes } from '../address.ts';
import { GatewayError } from '../errors.ts';
import { MASKED } from '../gateway-keys.ts';
import { parsedJson } from '../parsed-json.ts';
import { CAPTURE_FILES } from './capture-folder.ts';

export interface ReplayReport {
  status: { captured: number; now: number };
  /** True when the status and all bytes of the body are the same. */
  same: boolean;
  latencyMs: { captured: number; now: number };
  /** A sentence for people that names the first difference, or says that there is none. */
  summary: string;
}

/** The members of meta.json that a replay needs. */
const captureMeta = z.looseObject({
  method: z.string(),
  url: z.string().regex(/^\//, 'Expected a path'),
  request_headers: z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())])),
  status: z.number().int(),
  timings: z.looseObject({ latency_ms: z.number() }),
  truncated: z.boolean().optional(),
});

/**
 * Headers that are not replayed: those that the client sets, those that are hop-by-hop or added by a proxy, and those with
 * the page that a browser sent the request from. At another address the Origin of that page would be refused as that
 * of another site.
 */
const NOT_SENT_AGAIN =
  /^(host|content-length|transfer-encoding|connection|expect|x-request-id|origin|referer|sec-.*|forwarded|x-forwarded-.*)$/i;

/**
 * Replays one capture.
 * @param base the base URL of the gateway, such as `http://127.0.0.1:8000`, or its Unix socket
 * @param apiKey the key for a gateway that needs one, because captures hold no keys
 * @param signal ends the replay, which then rejects with its reason
 * @throws GatewayError `not_replayable` for a folder without a complete capture, and for a request that no client sends;
 * Error for a folder that is not there and for a gateway that cannot be reached
 */
export async function replay(
  folder: string,
  base: string,
  { apiKey, signal }: { apiKey?: string | undefined; signal?: AbortSignal | undefined } = {},
): Promise<ReplayReport> {
  const text = await readFile(join(folder, CAPTURE_FILES.meta), 'utf8');
  const parsed = captureMeta.safeParse(parsedJson(text) ?? null);
  if (!parsed.success) throw notReplayable(`it is not a capture (${parsed.error.issues[0]?.message})`);
  const meta = parsed.data;
  if (meta.truncated) throw notReplayable('it is incomplete: not all of a body was read, or kept');
  const body = join(folder, CAPTURE_FILES.request);
  const { size } = await stat(body);
  const captured = join(folder, CAPTURE_FILES.response);
  await stat(captured); // throws before anything is sent if there is no answer to compare with
  const startedAt = performance.now();
  const headers = {
    ...headersOf(meta.request_headers, apiKey),
    ...(size > 0 && { 'content-length': String(size) }),
  };
  const { url, socketPath } = reachedAt(base);
  const sent = { method: meta.method, path: meta.url, body, signal, headers, socketPath };
  return await send(new URL(url), sent, async (response) => {
    const { difference, now, then } = await compare(captured, response);
    const status = { captured: meta.status, now: response.statusCode ?? 0 };
    const latencyMs = Math.round((performance.now() - startedAt) * 100) / 100;
    const otherStatus = status.now !== status.captured;
    return {
      status,
      same: !otherStatus && difference === null,
      latencyMs: { captured: meta.timings.latency_ms, now: latencyMs },
      summary: otherStatus
        ? `Status ${status.captured} then, ${status.now} now`
        : difference === null
          ? 'The same answer'
          : `The bodies differ from byte ${difference} on (${then} bytes then, ${now} now)`,
    };
  });
}

interface Sent {
  method: string;
  /** The path and query, byte for byte as they were captured. */
  path: string;
  headers: Record<string, string | string[]>;
  /** The path of the file that holds the body. */
  body: string;
  signal: AbortSignal | undefined;
  socketPath: string | undefined;
}

/** Sends what fetch refuses to send too, such as a GET with a body. @param read gets the answer, and may read it slowly */
function send<Result>(
  base: URL,
  { body, ...options }: Sent,
  read: (response: IncomingMessage) => Promise<Result>,
): Promise<Result> {
  const request = base.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise<Result>((resolve, reject) => {
    try {
      const path = `${withoutTrailingSlashes(base.pathname)}${options.path}`;
      let answered = false;
      const sent = request(base.origin, { ...options, path, agent: false }, (res) => {
        answered = true;
        // An answer may come before the end of the body; the rest then need not be sent.
        read(res)
          .finally(() => sent.destroy())
          .then(resolve, reject);
      });
      // Once the answer has begun, reading it shows every failure.
      const failed = (error: Error | null | undefined) => error && !answered && reject(error);
      sent.on('error', failed);
      pipeline(createReadStream(body), sent, failed);
    } catch (error) {
      throw notReplayable(String(error));
    }
  });
}

/** @returns the first byte that differs, or null; and how many there were then, and are now */
async function compare(path: string, response: IncomingMessage) {
  await using file = await open(path);
  const then = (await file.stat()).size;
  let difference: number | null = null;
  let now = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (difference === null) {
      const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(chunk.length), 0, chunk.length, now);
      let same = 0;
      while (same < bytesRead && buffer[same] === chunk[same]) same += 1;
      if (same < chunk.length) difference = now + same;
    }
    now += chunk.length;
  }
  return { difference: difference ?? (now < then ? now : null), now, then };
}

const notReplayable = (why: string) => new GatewayError('not_replayable', { why });

function headersOf(
  captured: Record<string, string | number | string[]>,
  apiKey: string | undefined,
): Sent['headers'] {
  const headers: Sent['headers'] = {};
  for (const [name, value] of Object.entries(captured)) {
    if (NOT_SENT_AGAIN.test(name) || value === MASKED) continue;
    headers[name] = Array.isArray(value) ? value : String(value);
  }
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  return headers;
}
