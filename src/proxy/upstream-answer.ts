/**
 * Makes the error for a client of an error that an upstream answered (contract 2.1.7). The client gets the envelope in
 * every case: the members of a JSON object stay and are completed, and any other body is quoted. A body is read within
 * limits of bytes and time; what has come by then counts.
 */
import type { IncomingMessage } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { createBrotliDecompress, createUnzip } from 'node:zlib';
import { excerpt, GatewayError, type UpstreamAnswer } from '../errors.ts';
import type { Budgets } from '../limits/budgets.ts';
import { readUpTo } from '../streams.ts';
import type { Upstream } from './upstream.ts';

export type ErrorLimits = Budgets['upstream'];

const QUOTED_CHARACTERS = 500;

/** The content codings that upstreams use (RFC 9110, section 8.4.1). */
const DECODERS = {
  gzip: createUnzip,
  'x-gzip': createUnzip,
  deflate: createUnzip,
  br: createBrotliDecompress,
} as const;

/** Reads the answer to its end or to its limits. @param proxyRes an answer with a status from 400 up */
export async function answeredError(
  proxyRes: IncomingMessage,
  upstream: Upstream,
  limits: ErrorLimits,
): Promise<GatewayError<'upstream_error'>> {
  const { statusCode: status = 502, headers } = proxyRes;
  const text = await textOf(proxyRes, limits);
  const { name, category: provider } = upstream;
  const error = completed(text);
  const retryAfterSec = status === 503 ? secondsOf(headers['retry-after']) : undefined;
  return new GatewayError(
    'upstream_error',
    { upstream: name, status, why: saidIn(error) ?? (quoted(text) || 'without a body') },
    {
      provider,
      answered: { status, members: error ?? { error: {} } },
      ...(retryAfterSec !== undefined && { details: { retryAfterSec } }),
    },
  );
}

/** The body, decoded. Empty where nothing came, and where its coding is unknown. */
async function textOf(proxyRes: IncomingMessage, { errorBytes, errorMs }: ErrorLimits): Promise<string> {
  const body = decoded(proxyRes);
  if (body === null) return '';
  const chunks: Buffer[] = [];
  const late = setTimeout(() => body.destroy(), errorMs);
  try {
    await readUpTo(body, errorBytes, chunks);
  } catch {
    // The answer broke off, came too slowly or is no valid coding. The caller knows whether the call itself has ended.
  } finally {
    clearTimeout(late);
    proxyRes.destroy();
  }
  return Buffer.concat(chunks).toString('utf8', 0, errorBytes);
}

function decoded(proxyRes: IncomingMessage): Readable | null {
  const coding = proxyRes.headers['content-encoding']?.trim().toLowerCase() ?? 'identity';
  if (coding === 'identity') return proxyRes;
  const decoder = DECODERS[coding as keyof typeof DECODERS];
  // The reader of the decoder sees every error.
  return decoder === undefined ? null : pipeline(proxyRes, decoder(), () => undefined);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/** What the envelope needs as text. Where the upstream has another value, the gateway's own takes its place. */
const TEXTS = ['kind', 'provider', 'message', 'type'];

/** The members of the JSON object with an `error` object that has the message; null where the text is none. */
function completed(text: string): UpstreamAnswer['members'] | null {
  try {
    const members: unknown = JSON.parse(text);
    if (!isObject(members)) return null;
    JSON.stringify(members); // throws for JSON nested thousands of levels deep, which can be parsed but not written again
    const { error, message, detail } = members;
    const own = isObject(error) ? error : {};
    const texts = Object.entries(own).filter(([name, value]) => !TEXTS.includes(name) || isText(value));
    const [first] = Array.isArray(detail) ? detail : [];
    const said = [own.message, error, message, detail, isObject(first) && first.msg].find(isText);
    return {
      ...members,
      error: { ...Object.fromEntries(texts), ...(said !== undefined && { message: said }) },
    };
  } catch {
    return null;
  }
}

function saidIn(members: UpstreamAnswer['members'] | null): string | undefined {
  const message = members?.error.message;
  return typeof message === 'string' ? excerpt(message, QUOTED_CHARACTERS) : undefined;
}

/** The beginning of the text, without the characters that would control a terminal. */
const quoted = (text: string) => excerpt(text.replace(/\p{Cc}+/gu, ' ').trim(), QUOTED_CHARACTERS);

/** `Retry-After` as seconds from now; it may be a date, which ends in GMT (RFC 9110, section 10.2.3). */
function secondsOf(retryAfter = ''): number | undefined {
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const seconds = retryAfter.endsWith('GMT') ? (Date.parse(retryAfter) - Date.now()) / 1000 : Number.NaN;
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds));
}
