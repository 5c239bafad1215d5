/**
 * Serves the pages for people. They are static files of the top-level `assets` folder and of two packages, without a
 * build step. A page may load nothing from elsewhere and hold no inline script, so that a text shown on it can never
 * become code.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import express, { type Express, type RequestHandler } from 'express';

/** The same relative path serves both `src/http` and `dist/http`. */
const ASSETS = fileURLToPath(new URL('../../assets/', import.meta.url));

/** The path of each page, and its file. */
const PAGES: Readonly<Record<string, string>> = {
  '/playground': 'playground.html',
  '/docs': 'docs.html',
};

/** Only these files of the packages are served, below `/assets/vendor/`. */
const require = createRequire(import.meta.url);
const VENDOR = [
  require.resolve('htmx.org/dist/htmx.min.js'),
  require.resolve('uplot/dist/uPlot.iife.min.js'),
  require.resolve('uplot/dist/uPlot.min.css'),
];

const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "style-src 'self'",
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
      // The browser asks again each time, which costs little with an ETag. After an update, a new page then never
      // runs with an old script.
      'Cache-Control': 'no-cache',
    });
    next();
  };
}

export function mountPages(app: Express): void {
  // Who opens the address that the gateway prints when it starts is a person, and finds something to try.
  app.get('/', pageHeaders(), (_req, res) => res.redirect('./playground'));
  for (const [path, file] of Object.entries(PAGES))
    app.use(path, pageHeaders(), withoutSlash, serve(join(ASSETS, file)));
  for (const path of VENDOR) {
    app.use(`/assets/vendor/${basename(path)}`, pageHeaders(), packed(path), serve(path));
  }
  app.use('/assets', pageHeaders(), serve(ASSETS));
}

/** Leads from `/playground/` to `/playground`, from which the links of the page lead on. */
export const withoutSlash: RequestHandler = (req, res, next) => {
  const [path = ''] = req.originalUrl.split('?', 1);
  const name = path.endsWith('/') ? path.split('/').at(-2) : undefined;
  const isBelow = req.baseUrl !== '' && req.path !== '/';
  if (!name || isBelow) next();
  else res.redirect(`../${name}`);
};

/** Serves the gzip copy in the package to clients that accept gzip. Otherwise the next handler serves the file. */
function packed(path: string): RequestHandler {
  const file = `${path}.gz`;
  if (!existsSync(file)) return (_req, _res, next) => next();
  const send = serve(file);
  return (req, res, next) => {
    res.vary('Accept-Encoding');
    if (req.acceptsEncodings('gzip') === false) return next();
    res.type(extname(path)).set('Content-Encoding', 'gzip');
    send(req, res, next);
  };
}

/** Serves one file, or all files of a folder. Unlike `res.sendFile`, it sends an ETag although the app has them off. */
const serve = (path: string): RequestHandler =>
  express.static(path, { index: false, redirect: false, cacheControl: false });
