/** Sends a captured request to a gateway again, and compares the new answer with the captured one. */
import { readFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import { GatewayError } from '../../errors.ts';
import { withoutTrailingSlashes } from '../../url-base.ts';
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
 * @param base the base URL of the gateway, such as `http://127.0.0.1:8000`
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
  const parsed = captureMeta.safeParse(jsonOf(text));
  if (!parsed.success) throw notReplayable(`it is not a capture (${parsed.error.issues[0]?.message})`);
  const meta = parsed.data;
  if (meta.truncated) throw notReplayable('it is incomplete: not all of a body was read, or kept');
  const body = await readFile(join(folder, CAPTURE_FILES.request));
  const captured = await readFile(join(folder, CAPTURE_FILES.response));
  const startedAt = performance.now();
  const response = await send(new URL(base), {
    ...{ method: meta.method, path: meta.url, body, signal },
    headers: {
      ...headersOf(meta.request_headers, apiKey),
      ...(body.length > 0 && { 'content-length': String(body.length) }),
    },
  });
  const same = response.status === meta.status && response.body.equals(captured);
  return {
    status: { captured: meta.status, now: response.status },
    same,
    latencyMs: {
      captured: meta.timings.latency_ms,
      now: Math.round((performance.now() - startedAt) * 100) / 100,
    },
    summary: same ? 'The same answer' : difference(meta.status, captured, response.status, response.body),
  };
}

interface Sent {
  method: string;
  /** The path and query, byte for byte as they were captured. */
  path: string;
  headers: Record<string, string | string[]>;
  body: Buffer;
  signal: AbortSignal | undefined;
}

/** Sends what fetch refuses to send too, such as a GET with a body, and gives the bytes of the answer as they came. */
function send(base: URL, { body, ...options }: Sent): Promise<{ status: number; body: Buffer }> {
  const request = base.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    try {
      const path = `${withoutTrailingSlashes(base.pathname)}${options.path}`;
      const sent = request(base.origin, { ...options, path, agent: false }, (res) => {
        buffer(res).then((bytes) => resolve({ status: res.statusCode ?? 0, body: bytes }), reject);
      });
      sent.once('error', reject).end(body);
    } catch (error) {
      throw notReplayable(String(error));
    }
  });
}

const notReplayable = (why: string) => new GatewayError('not_replayable', { why });

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function headersOf(
  captured: Record<string, string | number | string[]>,
  apiKey: string | undefined,
): Sent['headers'] {
  const headers: Sent['headers'] = {};
  for (const [name, value] of Object.entries(captured)) {
    if (NOT_SENT_AGAIN.test(name) || value === '***') continue;
    headers[name] = Array.isArray(value) ? value : String(value);
  }
  if (apiKey !== undefined) headers.authorization = `Bearer ${apiKey}`;
  return headers;
}

function difference(statusThen: number, then: Buffer, statusNow: number, now: Buffer): string {
  if (statusThen !== statusNow) return `Status ${statusThen} then, ${statusNow} now`;
  const shorter = Math.min(then.length, now.length);
  let at = 0;
  while (at < shorter && then[at] === now[at]) at += 1;
  return `The bodies differ from byte ${at} on (${then.length} bytes then, ${now.length} now)`;
}
