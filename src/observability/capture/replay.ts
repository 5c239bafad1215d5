/** Sends a captured request to a gateway again and compares what comes with what came then. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { CAPTURE_FILES } from './capture-folder.ts';

export interface ReplayReport {
  status: { captured: number; now: number };
  /** Whether status and body are the same, byte for byte. */
  same: boolean;
  latencyMs: { captured: number; now: number };
  /** For people: the first difference, or that there is none. */
  summary: string;
}

/** What a replay needs of meta.json. */
const captureMeta = z.looseObject({
  method: z.string(),
  url: z.string().regex(/^\//, 'Expected a path'),
  request_headers: z.record(z.string(), z.union([z.string(), z.number(), z.array(z.string())])),
  status: z.number().int(),
  timings: z.looseObject({ latency_ms: z.number() }),
  truncated: z.boolean().optional(),
});

/**
 * Headers that the client makes anew, that belong to the one way there was, or that say which page a browser sent
 * the request from: sent to another address, a page's Origin would be that of a foreign site and be refused.
 */
const NOT_SENT_AGAIN =
  /^(host|content-length|transfer-encoding|connection|expect|x-request-id|origin|referer|sec-.*|forwarded|x-forwarded-.*)$/i;

/**
 * @param base of the gateway, `http://127.0.0.1:8000`
 * @param apiKey for a gateway that wants one: a capture holds none
 * @throws Error for a folder that is no complete capture, or a gateway that cannot be reached
 */
export async function replay(folder: string, base: string, apiKey?: string): Promise<ReplayReport> {
  const parsed = captureMeta.safeParse(JSON.parse(await readFile(join(folder, CAPTURE_FILES.meta), 'utf8')));
  if (!parsed.success) throw new Error(`${folder} is not a capture: ${parsed.error.issues[0]?.message}`);
  const meta = parsed.data;
  if (meta.truncated)
    throw new Error(`${folder} is not whole: its body was cut off when the disk was too slow`);
  const request = await readFile(join(folder, CAPTURE_FILES.request));
  const captured = await readFile(join(folder, CAPTURE_FILES.response));
  const startedAt = performance.now();
  const response = await fetch(new URL(base).origin + meta.url, {
    method: meta.method,
    headers: headersOf(meta.request_headers, apiKey),
    redirect: 'manual',
    ...(request.length > 0 && { body: Uint8Array.from(request) }),
  });
  const body = Buffer.from(await response.arrayBuffer());
  const same = response.status === meta.status && body.equals(captured);
  return {
    status: { captured: meta.status, now: response.status },
    same,
    latencyMs: {
      captured: meta.timings.latency_ms,
      now: Math.round((performance.now() - startedAt) * 100) / 100,
    },
    summary: same ? 'The same answer' : difference(meta.status, captured, response.status, body),
  };
}

function headersOf(
  captured: Record<string, string | number | string[]>,
  apiKey: string | undefined,
): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(captured)) {
    if (NOT_SENT_AGAIN.test(name) || value === '***') continue;
    headers.set(name, [value].flat().join(', '));
  }
  if (apiKey !== undefined) headers.set('Authorization', `Bearer ${apiKey}`);
  return headers;
}

function difference(statusThen: number, then: Buffer, statusNow: number, now: Buffer): string {
  if (statusThen !== statusNow) return `Status ${statusThen} then, ${statusNow} now`;
  const shorter = Math.min(then.length, now.length);
  let at = 0;
  while (at < shorter && then[at] === now[at]) at += 1;
  return `The bodies differ from byte ${at} on (${then.length} bytes then, ${now.length} now)`;
}
