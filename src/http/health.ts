/** GET /health answers as long as the process runs. It does not check the upstreams or the models (contract 4.1). */
import type { RequestHandler } from 'express';

export function health(version: string): RequestHandler {
  return (_req, res) => {
    res.json({ status: 'ok', version });
  };
}
