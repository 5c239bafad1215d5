/**
 * Serves texts of pages, and of the description of the API, compressed. Each is compressed when it is first asked for,
 * and kept while its file is the same: the pages together have less than a megabyte then.
 */
import { readdirSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Request, RequestHandler, Response } from 'express';

const compress = promisify(gzip);
const TEXTS = new Set(['.html', '.css', '.js', '.svg']);
const PLAIN = ['range', 'if-match', 'if-unmodified-since'];

interface Packed {
  tag: string;
  body: Buffer;
}

/** The file of a path to clients that accept gzip. Otherwise, and below the path, the next handler answers. */
export function compressedFile(path: string): RequestHandler {
  const send = sender(path);
  return (req, res, next) => {
    const [asked = ''] = req.originalUrl.split('?', 1);
    if (req.path !== '/' || asked.endsWith('/')) next();
    else send(req, res, next);
  };
}

/** The same for the files of a folder that are there now. */
export function compressedFolder(folder: string): RequestHandler {
  const files = new Map(
    readdirSync(folder, { recursive: true })
      .map(String)
      .filter((name) => TEXTS.has(extname(name)))
      .map((name) => [`/${name}`, sender(join(folder, name))]),
  );
  return (req, res, next) => {
    const send = files.get(req.path);
    if (send === undefined) next();
    else send(req, res, next);
  };
}

function sender(path: string): RequestHandler {
  const packed = keeper(path);
  return async (req, res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return next();
    res.vary('Accept-Encoding');
    // A part of a file, or one version of it, is a part or a version of the file as it is.
    if (PLAIN.some((name) => req.headers[name] !== undefined)) return next();
    if (req.acceptsEncodings('gzip') === false) return next();
    const found = await packed().catch(() => null);
    if (found === null) return next(); // the file is gone, or cannot be read now
    const { tag, body } = found;
    res.set('ETag', tag);
    if (req.fresh) return void res.status(304).end();
    res.type(extname(path)).set({ 'Content-Encoding': 'gzip', 'Content-Length': String(body.length) });
    res.end(req.method === 'HEAD' ? undefined : body);
  };
}

/** Sends a JSON text, compressed to clients that accept gzip. The last text is kept compressed. */
export function compressedJson() {
  let last: { text: string; packed: Promise<Buffer> } | null = null;
  return async (req: Request, res: Response, text: string): Promise<void> => {
    res.vary('Accept-Encoding').type('json');
    if (req.acceptsEncodings('gzip') === false) return void res.send(text);
    if (last?.text !== text) last = { text, packed: compress(text) };
    const body = await last.packed;
    res.set('Content-Encoding', 'gzip').send(body);
  };
}

/** Two requests at once compress once. */
function keeper(path: string): () => Promise<Packed> {
  let kept: { tag: string; packed: Promise<Packed> } | null = null;
  return async () => {
    const { size, mtimeMs } = await stat(path);
    const tag = `W/"${size.toString(16)}-${Math.round(mtimeMs).toString(16)}-gz"`;
    if (kept?.tag !== tag) {
      const packed = readFile(path).then(async (text) => ({ tag, body: await compress(text, { level: 9 }) }));
      const fresh = { tag, packed };
      packed.catch(() => {
        if (kept === fresh) kept = null; // the next request tries again
      });
      kept = fresh;
    }
    return kept.packed;
  };
}
