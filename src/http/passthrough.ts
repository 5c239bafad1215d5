/**
 * Speech and chat requests. They hold the slot for the whole call of the upstream (contract 4.4, 4.5), but not while
 * the client is still sending its body.
 */
import type { Request, RequestHandler } from 'express';
import { parsedJson } from '../parsed-json.ts';
import type { Forward } from '../proxy/reverse-proxy.ts';
import { addChunk } from '../streams.ts';
import { ticketOf } from './admission.ts';
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

/**
 * A chat with an image is longer than this. Of such a body only the beginning is kept, and only the members of the object
 * that end in it are read.
 */
const MAX_BYTES = 256 * 1024;
const MAX_NAME = 128;

/**
 * Reads the model name from a copy of a forwarded JSON body, so that the body itself is not delayed or changed. `read`
 * takes each chunk; `name` then gives the model (at most 128 characters) if the body names one.
 */
export function modelNameReader(req: Pick<Request, 'is'>) {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const isJson = Boolean(req.is('json'));
  return {
    read(chunk: Buffer): void {
      if (isJson && bytes < MAX_BYTES) addChunk(chunks, chunk.subarray(0, MAX_BYTES - bytes));
      bytes += chunk.length;
    },
    name(): string | undefined {
      if (bytes === 0 || !isJson) return undefined;
      const text = Buffer.concat(chunks).toString('utf8');
      // What is no JSON, or incomplete, the upstream will report.
      const { model } = Object(parsedJson(bytes > MAX_BYTES ? wholeMembers(text) : text));
      return typeof model === 'string' ? model.slice(0, MAX_NAME) : undefined;
    },
  };
}

/** The object that is cut off at the end of the text, up to the last comma between its members, and closed there. */
function wholeMembers(text: string): string {
  let depth = 0;
  let inString = false;
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (inString && character === '\\') i++;
    else if (character === '"') inString = !inString;
    else if (inString) continue;
    else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') depth--;
    else if (character === ',' && depth === 1) end = i;
  }
  return `${text.slice(0, end)}}`;
}
