/** Reads the model name from a copy of a forwarded JSON body, so that the body itself is not delayed or changed. */
import type { Request } from 'express';

/** A longer body is forwarded as well, but the log then has no model name for it. */
const MAX_BYTES = 256 * 1024;
const MAX_NAME = 128;

/** `read` takes each chunk of the body; `name` then gives the model (at most 128 characters) if the body names one. */
export function modelNameReader(req: Request): { read(chunk: Buffer): void; name(): string | undefined } {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const isJson = Boolean(req.is('json'));
  return {
    read(chunk) {
      bytes += chunk.length;
      if (isJson && bytes <= MAX_BYTES) chunks.push(chunk);
    },
    name() {
      if (bytes === 0 || !isJson || bytes > MAX_BYTES) return undefined;
      try {
        const { model } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
        return typeof model === 'string' ? model.slice(0, MAX_NAME) : undefined;
      } catch {
        return undefined; // the body is invalid JSON or incomplete, which the upstream will report
      }
    },
  };
}
