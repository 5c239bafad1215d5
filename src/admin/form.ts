/** Reads the small forms of the admin pages: `multipart/form-data` (contract 4.6) and `x-www-form-urlencoded`. */
import express, { type Request, type Response } from 'express';
import multer from 'multer';
import { codingRefusal, mediaTypeRefusal } from '../http/server/refusals.ts';
import { formRefusal } from '../http/upload/form-refusal.ts';
import { continueIfAsked, isCoded } from '../http/upload/request-body.ts';
import { BUDGETS } from '../limits/budgets.ts';

const LIMITS = BUDGETS.form.admin;
const MAX_BYTES = LIMITS.fields * (LIMITS.fieldNameSize + LIMITS.fieldSize);

const TYPES = ['multipart/form-data', 'application/x-www-form-urlencoded'];
const parsers = [
  multer({ limits: LIMITS }).none(),
  express.urlencoded({ extended: false, limit: MAX_BYTES, parameterLimit: LIMITS.fields }),
];

const SEARCH_CHARS = 100;

/** What the field `search` of the query looks for, in lower case. */
export const soughtIn = ({ query: { search } }: Request): string =>
  typeof search === 'string' ? search.slice(0, SEARCH_CHARS).trim().toLowerCase() : '';

/**
 * The fields of a form by name; a field that was sent several times is an array. Empty without a body.
 * @throws GatewayError `unsupported_media_type` for a body of another type, whose fields would else count as absent,
 *   and for an encoded multipart form;
 *   `invalid_form` or `invalid_value` for a form that is damaged or too large
 */
export async function readForm(req: Request, res: Response): Promise<Readonly<Record<string, unknown>>> {
  if (req.is(TYPES) === false && req.get('Content-Length') !== '0')
    throw mediaTypeRefusal(req.get('Content-Type'), TYPES);
  if (req.is('multipart/form-data') && isCoded(req)) throw codingRefusal(req.get('Content-Encoding') ?? '');
  continueIfAsked(req, res);
  for (const parse of parsers) {
    try {
      await new Promise<void>((resolve, reject) => {
        parse(req, res, (error?: unknown) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      throw Object(error).status === 415 ? error : formRefusal(error, LIMITS);
    }
  }
  return { ...req.body };
}
