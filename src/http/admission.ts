/**
 * Checks the slot before a byte of the body is read, so that a busy gateway refuses an upload at once. The slot is
 * not taken yet, because a slow upload must not hold it.
 */
import type { RequestHandler } from 'express';
import type { Slot } from '../engine/slot.ts';

export function admission(slot: Slot): RequestHandler {
  return (_req, _res, next) => {
    slot.assertFree();
    next();
  };
}
