/**
 * Serves the pages for people. They are static files of the top-level `assets` folder and of five packages, without a
 * build step. A page may load nothing from elsewhere and hold no inline script, so that a text shown on it can never
 * become code. Only the playground fetches from elsewhere, and never code.
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import express, { type Express, type RequestHandler } from 'express';
import { compressedFile, compressedFolder } from './compressed.ts';
import { allowOnly } from './route-table.ts';

/** The same relative path serves both `src/http` and `dist/http`. */
const ASSETS = fileURLToPath(new URL('../../assets/', import.meta.url));

/** The path of each page, and its file. */
const PAGES: Readonly<Record<string, string>> = {
  '/playground': 'playground.html',
  '/docs': 'docs.html',
};

/** Only these files of the packages are served, below `/assets/vendor/`, by these names. */
const require = createRequire(import.meta.url);
const VENDOR: Readonly<Record<string, string>> = {
  'htmx.min.js': require.resolve('htmx.org/dist/htmx.min.js'),
  'uPlot.iife.min.js': require.resolve('uplot/dist/uPlot.iife.min.js'),
  'uPlot.min.css': require.resolve('uplot/dist/uPlot.min.css'),
  'marked.esm.js': require.resolve('marked'),
  'purify.min.js': require.resolve('dompurify/dist/purify.min.js'),
  'fflate.js': fileURLToPath(import.meta.resolve('fflate/browser')),
};

const CONTENT_SECURITY_POLICY: readonly string[] = [
  "default-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "object-src 'none'",
];

/** The playground fetches audio from a link that its visitor enters, so it may connect to any host. */
const EXTRA_POLICY: Readonly<Record<string, string>> = { '/playground': "connect-src 'self' https:" };

/** @param path of the page, where it is one that may do more than the others */
export function pageHeaders(path = ''): RequestHandler {
  const extra = EXTRA_POLICY[path];
  const policy = [...CONTENT_SECURITY_POLICY, ...(extra === undefined ? [] : [extra])].join('; ');
  return (_req, res, next) => {
    res.set({
      'Content-Security-Policy': policy,
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
    app.use(path, pageHeaders(path), withoutSlash, ...served(join(ASSETS, file)));
  for (const path of ['/', ...Object.keys(PAGES)]) allowOnly(app, path, ['GET', 'HEAD']);
  for (const [name, path] of Object.entries(VENDOR))
    app.use(`/assets/vendor/${name}`, pageHeaders(), ...served(path));
  app.use('/assets', pageHeaders(), compressedFolder(ASSETS), serve(ASSETS));
}

/** Leads from `/playground/` to `/playground`, from which the links of the page lead on. */
export const withoutSlash: RequestHandler = (req, res, next) => {
  const [path = ''] = req.originalUrl.split('?', 1);
  const name = path.endsWith('/') ? path.split('/').at(-2) : undefined;
  const isBelow = req.baseUrl !== '' && req.path !== '/';
  if (!name || isBelow) next();
  else res.redirect(`../${name}`);
};

const served = (path: string) => [compressedFile(path), serve(path)];

/** Serves one file, or all files of a folder. Unlike `res.sendFile`, it sends an ETag although the app has them off. */
const serve = (path: string): RequestHandler =>
  express.static(path, { index: false, redirect: false, cacheControl: false });
