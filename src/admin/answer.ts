/** Sends the answers of the admin routes: an HTML fragment to htmx, JSON to other clients, and never from a cache. */
import type { Request, Response } from 'express';
import type { Html } from './views/html.ts';

export function sendHtml(res: Response, view: Html): void {
  res.set('Cache-Control', 'no-store').type('html').send(view.text);
}

export function sendJson(res: Response, body: unknown): void {
  res.set('Cache-Control', 'no-store').json(body);
}

export function sendEither(req: Request, res: Response, view: Html, body: unknown): void {
  if (req.get('HX-Request') === 'true') sendHtml(res, view);
  else sendJson(res, body);
}
