/** GET /health: the process answers; nothing behind it is asked (contract 4.1). */
import type { RequestHandler } from 'express';

export function health(version: string): RequestHandler {
  return (_req, res) => {
    res.json({ status: 'ok', version });
  };
}
