/**
 * The routes of a capture: its page, its bodies as files, and its replay. A body is never shown as a page, because it
 * may hold scripts.
 */
import type { RequestHandler } from 'express';
import type { StoredCapture } from '../capture/capture-folder.ts';
import { GatewayError } from '../errors.ts';
import { hasSession } from '../http/access/api-key.ts';
import { clientSignal } from '../http/server/client-signal.ts';
import { REQUEST_ID } from '../http/server/request-id.ts';
import { sendEither, sendHtml } from './answer.ts';
import type { AdminDeps, CaptureActions } from './deps.ts';
import { capturePage, replayView } from './views/capture.ts';

/** These request ids must never become a path, because they would lead to another folder. */
const DOTS = /^\.{1,2}$/;

async function find(captures: CaptureActions, id: string): Promise<StoredCapture> {
  const found = REQUEST_ID.test(id) && !DOTS.test(id) ? await captures.find(id) : null;
  if (found === null) throw gone();
  return found;
}

const gone = () => new GatewayError('capture_not_found', {});

export function showCapture(captures: CaptureActions): RequestHandler {
  return async (req, res) => {
    const id = String(req.params.requestId);
    sendHtml(res, capturePage(id, await find(captures, id), hasSession(res)));
  };
}

/** Sends a body as a file to download, because it may be anything, also a page with scripts. */
export function downloadBody(captures: CaptureActions, file: 'req.bin' | 'resp.bin'): RequestHandler {
  return async (req, res, next) => {
    const id = String(req.params.requestId);
    const { path } = await find(captures, id);
    res.attachment(`${id}-${file}`).type('application/octet-stream').set('Cache-Control', 'no-store');
    res.sendFile(file, { root: path, cacheControl: false }, (error) => {
      // A 404 means that the capture was removed meanwhile. Other errors, such as a bad range, are passed on.
      const isGone = error && 'status' in error && error.status === 404;
      if (error && !res.headersSent && !res.destroyed) next(isGone ? gone() : error);
    });
  };
}

export function replayCapture({
  captures,
  shutdown,
}: Pick<AdminDeps, 'captures' | 'shutdown'>): RequestHandler {
  return async (req, res) => {
    const id = String(req.params.requestId);
    const signal = clientSignal(res, shutdown);
    const report = await captures.replay(await find(captures, id), signal);
    sendEither(
      req,
      res,
      () => replayView(id, report),
      () => report,
    );
  };
}
