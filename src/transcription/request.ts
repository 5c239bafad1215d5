/** What a client asks for, checked and in the terms of the domain. */
import { z } from 'zod';
import { isTruthy } from '../config.ts';
import { GatewayError } from '../errors.ts';
import { parseLanguage } from './languages.ts';

export type ResponseFormat = 'json' | 'text' | 'verbose_json';
export type Granularity = 'word' | 'segment';

export interface TranscriptionRequest {
  model: string | undefined;
  /** ISO 639 code. */
  language: string | undefined;
  prompt: string;
  temperature: number;
  responseFormat: ResponseFormat;
  granularities: ReadonlySet<Granularity>;
  translate: boolean;
}

/** A field sent empty is a field not sent: HTML forms and some clients send every field they know. */
const optional = <T extends z.ZodType>(schema: T) =>
  z.preprocess((value) => (value === '' ? undefined : value), schema.optional());

const single = z.string({ error: 'Expected one text value' });

const fields = z.object({
  model: optional(single),
  language: optional(
    single.transform((text, context) => {
      if (text.trim().toLowerCase() === 'auto') return undefined;
      const code = parseLanguage(text);
      if (code === undefined) context.addIssue('Expected an ISO 639-1 code or an English language name');
      return code;
    }),
  ),
  prompt: optional(single),
  temperature: optional(
    single
      .regex(/^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i, 'Expected a number from 0 to 1')
      .transform(Number)
      .pipe(z.number().min(0, 'Expected a number from 0 to 1').max(1, 'Expected a number from 0 to 1')),
  ),
  response_format: optional(z.enum(['json', 'text', 'verbose_json'])),
  timestamp_granularities: optional(z.array(z.enum(['word', 'segment']))),
  translate: optional(single.transform(isTruthy)),
});

/**
 * @param body multipart text fields; a field sent several times is an array
 * @throws GatewayError malformed naming field, value and what is allowed
 */
export function parseRequest(body: Readonly<Record<string, unknown>>): TranscriptionRequest {
  const granularities = body['timestamp_granularities[]'] ?? body.timestamp_granularities;
  const parsed = fields.safeParse({
    ...Object.fromEntries(Object.keys(fields.shape).map((name) => [name, body[name]])),
    timestamp_granularities:
      granularities === undefined || granularities === '' ? undefined : [granularities].flat(),
  });
  if (!parsed.success) throw badField(parsed.error.issues[0], body);
  const f = parsed.data;
  return {
    model: f.model,
    language: f.language,
    prompt: f.prompt ?? '',
    temperature: f.temperature ?? 0,
    responseFormat: f.response_format ?? 'json',
    granularities: new Set(f.timestamp_granularities ?? ['segment']),
    translate: f.translate ?? false,
  };
}

function badField(
  issue: z.core.$ZodIssue | undefined,
  body: Readonly<Record<string, unknown>>,
): GatewayError {
  const name = String(issue?.path[0] ?? 'request');
  const value = JSON.stringify(body[name] ?? body[`${name}[]`] ?? null);
  const shown = value.length > 80 ? `${value.slice(0, 80)}…` : value;
  return new GatewayError('malformed', `Field "${name}" cannot be ${shown}: ${issue?.message}`, {
    param: name,
    code: 'invalid_value',
  });
}
