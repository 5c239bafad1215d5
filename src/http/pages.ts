/**
 * The pages for people: static files of the top-level `assets` folder, no build step. Nothing of a page may come
 * from elsewhere or stand inline, so that a text shown on it can never become code.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import express, { type Express, type RequestHandler } from 'express';

/** From `src/http` and from `dist/http` alike. */
const ASSETS = fileURLToPath(new URL('../../assets/', import.meta.url));

/** Where a page lives, and its file. */
const PAGES: Readonly<Record<string, string>> = { '/playground': 'playground.html' };

const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "object-src 'none'",
].join('; ');

export function pageHeaders(): RequestHandler {
  return (_req, res, next) => {
    res.set({
      'Content-Security-Policy': CONTENT_SECURITY_POLICY,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'X-Frame-Options': 'DENY',
      // An ETag answers cheaply, and after an update no old script meets a new page.
      'Cache-Control': 'no-cache',
    });
    next();
  };
}

export function mountPages(app: Express): void {
  for (const [path, file] of Object.entries(PAGES)) app.use(path, pageHeaders(), serve(file));
  app.use('/assets', pageHeaders(), serve('.'));
}

/** One file, or all of a folder. Unlike `res.sendFile` it has an ETag where the app's are off. */
const serve = (name: string): RequestHandler =>
  express.static(join(ASSETS, name), { index: false, redirect: false, cacheControl: false });
