/** Sends a captured request to a gateway again, and compares the new answer with the captured one. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
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
 * Headers that are not replayed: those that fetch sets, those that are hop-by-hop or added by a proxy, and those with
 * the page that a browser sent the request from. At another address the Origin of that page would be refused as that
 * of another site.
 */
const NOT_SENT_AGAIN =
  /^(host|content-length|transfer-encoding|connection|expect|x-request-id|origin|referer|sec-.*|forwarded|x-forwarded-.*)$/i;

/**
 * Replays one capture.
 * @param base the base URL of the gateway, such as `http://127.0.0.1:8000`
 * @param apiKey the key for a gateway that needs one, because captures hold no keys
 * @throws Error for a folder without a complete capture, and for a gateway that cannot be reached
 */
export async function replay(folder: string, base: string, apiKey?: string): Promise<ReplayReport> {
  const parsed = captureMeta.safeParse(JSON.parse(await readFile(join(folder, CAPTURE_FILES.meta), 'utf8')));
  if (!parsed.success) throw new Error(`${folder} is not a capture: ${parsed.error.issues[0]?.message}`);
  const meta = parsed.data;
  if (meta.truncated)
    throw new Error(`${folder} is incomplete: a body was cut because the disk was too slow`);
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
