/**
 * Ends every answer that its client stops reading, or reads too slowly, whoever computes it. Until then it holds memory
 * and a connection, and an answer that is computed meanwhile holds the slot.
 */
import type { RequestHandler } from 'express';
import type { Logger } from 'winston';
import type { Budgets } from '../budgets.ts';
import { watchReading } from '../proxy/client-pace.ts';
import { noteFailure } from './error-handler.ts';

export function endSlowReaders(limits: Budgets['forwarded'], log: Logger): RequestHandler {
  return (_req, res, next) => {
    const reading = watchReading(res, limits, (error) => {
      noteFailure(log, error, res);
      res.destroy();
    });
    res.once('close', reading.stop);
    next();
  };
}
