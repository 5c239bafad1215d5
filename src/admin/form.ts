/** The small forms of the admin pages: `multipart/form-data` as contract 4.6 says, `x-www-form-urlencoded` too. */
import express, { type Request, type Response } from 'express';
import multer from 'multer';
import { FORM_LIMITS, formRefusal } from '../http/form-limits.ts';
import { continueIfAsked } from '../http/upload.ts';

const LIMITS = FORM_LIMITS.admin;
const MAX_BYTES = LIMITS.fields * (LIMITS.fieldNameSize + LIMITS.fieldSize);

const parsers = [
  multer({ limits: LIMITS }).none(),
  express.urlencoded({ extended: false, limit: MAX_BYTES, parameterLimit: LIMITS.fields }),
];

/** The fields; one that was sent several times is an array. Empty for a body that is no form. */
export async function readForm(req: Request, res: Response): Promise<Readonly<Record<string, unknown>>> {
  continueIfAsked(req, res);
  for (const parse of parsers) {
    try {
      await new Promise<void>((resolve, reject) => {
        parse(req, res, (error?: unknown) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      throw formRefusal(error, LIMITS);
    }
  }
  return { ...req.body };
}
