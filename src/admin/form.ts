/** The small forms of the admin pages: `multipart/form-data` as the contract says, `x-www-form-urlencoded` too. */
import express, { type Request, type Response } from 'express';
import multer from 'multer';
import { GatewayError } from '../errors.ts';
import { continueIfAsked } from '../http/upload.ts';

const LIMIT_BYTES = 16 * 1024;

const parsers = [
  multer({ limits: { fields: 8, parts: 8, fieldNameSize: 64, fieldSize: LIMIT_BYTES } }).none(),
  express.urlencoded({ extended: false, limit: LIMIT_BYTES, parameterLimit: 8 }),
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
      const reason = error instanceof Error ? error.message : String(error);
      throw new GatewayError('malformed', `The form cannot be read: ${reason}`, { code: 'invalid_form' });
    }
  }
  return { ...req.body };
}
