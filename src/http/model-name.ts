/** Which model a passed-on JSON request asks for: read from a copy as it goes by, never in its way. */
import type { Request } from 'express';

/** A longer body is passed on all the same; its model is then not in the log. */
const MAX_BYTES = 256 * 1024;
const MAX_NAME = 128;

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
        return undefined; // not JSON, or cut short: the upstream says so itself
      }
    },
  };
}
