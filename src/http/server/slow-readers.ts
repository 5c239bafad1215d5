/**
 * Ends an answer when its client stops reading it, or reads it too slowly. This holds for the answers of the gateway and
 * for those of the upstreams. Such a client holds memory and a connection. It holds the slot, too, as long as the answer
 * is being computed.
 */
import type { RequestHandler } from 'express';
import type { Logger } from 'winston';
import type { Budgets } from '../../limits/budgets.ts';
import { watchReading } from '../../limits/client-pace.ts';
import { noteFailure } from '../error-handler.ts';

export function endSlowReaders(limits: Budgets['answer'], log: Logger): RequestHandler {
  return (_req, res, next) => {
    const reading = watchReading(res, limits, (error) => {
      noteFailure(log, error, res);
      res.destroy();
    });
    res.once('close', reading.stop);
    next();
  };
}
