/**
 * Speech and chat requests. They hold the slot for the whole call of the upstream (contract 4.4, 4.5), but not while
 * the client is still sending its body.
 */
import type { RequestHandler } from 'express';
import type { Forward } from '../proxy/reverse-proxy.ts';
import { ticketOf } from './admission.ts';
import { modelNameReader } from './body-model-name.ts';
import { notesOf } from './observe.ts';
import { clientSignal } from './server/client-signal.ts';
import { forwardedPrefix } from './server/forwarded-prefix.ts';
import type { ReceiveBody } from './upload/proxied-body.ts';
import { diskFailure } from './upload/spool.ts';

export function passthrough(
  category: 'tts' | 'llm',
  { receiveBody, shutdown, forward }: { receiveBody: ReceiveBody; shutdown: AbortSignal; forward: Forward },
): RequestHandler {
  return async (req, res) => {
    const notes = notesOf(res);
    const left = clientSignal(res, shutdown);
    notes.provider = category;
    const model = modelNameReader(req);
    const onChunk = (chunk: Buffer) => {
      notes.requestBody(chunk);
      model.read(chunk);
    };
    const received = await receiveBody(req, res, { signal: left, onChunk });
    try {
      notes.model = model.name();
      using held = await ticketOf(res).take(left);
      notes.slotTaken();
      const unreadable = new AbortController();
      const body = received?.open().once('error', (cause) => {
        unreadable.abort(diskFailure(cause));
      });
      const signal = AbortSignal.any([left, held.signal, unreadable.signal]);
      await forward(req, res, { signal, body, servedBelow: forwardedPrefix(req) });
    } finally {
      received?.release();
    }
  };
}
