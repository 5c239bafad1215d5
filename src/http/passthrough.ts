/**
 * Speech and chat requests. They hold the slot for the whole call of the upstream (contract 4.4, 4.5), but not while
 * the client is still sending its body.
 */
import type { RequestHandler } from 'express';
import type { BodyReceiver } from '../proxy/request-body.ts';
import type { Forward } from '../proxy/reverse-proxy.ts';
import { turnOf } from './admission.ts';
import { clientSignal } from './client-signal.ts';
import { modelNameReader } from './model-name.ts';
import { notesOf } from './observe.ts';
import { continueIfAsked } from './upload.ts';

export interface ProxiedDeps {
  bodies: BodyReceiver;
  shutdown: AbortSignal;
  forward: Forward;
}

export function passthrough(
  category: 'tts' | 'llm',
  { bodies, shutdown, forward }: ProxiedDeps,
): RequestHandler {
  return async (req, res) => {
    const notes = notesOf(res);
    const left = clientSignal(res, shutdown);
    notes.provider = category;
    continueIfAsked(req, res);
    await bodies.receive(req, { signal: left, onLost: notes.requestBody });
    using held = await turnOf(res)
      .take(left)
      .catch((refusal) => {
        if (req.readableLength > 0) notes.requestBody(req.read()); // it counts, although it goes nowhere
        throw refusal;
      });
    notes.slotTaken();
    const model = modelNameReader(req);
    req.once('end', () => {
      notes.model = model.name();
    });
    const onRequestBody = (chunk: Buffer) => {
      notes.requestBody(chunk);
      model.read(chunk);
    };
    await forward(req, res, { signal: AbortSignal.any([left, held.signal]), onRequestBody });
  };
}
