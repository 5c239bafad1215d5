/**
 * GET /health answers as long as the process runs. It does not check the upstreams or the models (contract 4.1).
 * GET /ready is for load balancers: it fails as soon as the gateway is going to stop (contract 4.1).
 */
import type { RequestHandler } from 'express';
import type { GracefulStop } from './server/graceful-stop.ts';

export function health(version: string): RequestHandler {
  return (_req, res) => {
    res.json({ status: 'ok', version });
  };
}

export function ready(stop: GracefulStop): RequestHandler {
  return (_req, res) => {
    stop.assertServing();
    res.json({ status: 'ready' });
  };
}
