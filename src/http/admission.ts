/**
 * Checks before a byte of the body is read whether the gateway is stopping and whether the slot is held, so that an
 * upload is refused at once. The slot is not taken yet, because a slow upload must not hold it.
 */
import type { RequestHandler } from 'express';
import type { Slot } from '../engine/slot.ts';
import type { GracefulStop } from './graceful-stop.ts';

export function admission(slot: Slot, stop: GracefulStop): RequestHandler {
  return (_req, _res, next) => {
    stop.assertServing();
    slot.assertFree();
    next();
  };
}
