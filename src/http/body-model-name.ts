/** Reads the model name from a copy of a forwarded JSON body, so that the body itself is not delayed or changed. */
import type { Request } from 'express';
import { addChunk } from './upload/request-body.ts';

/**
 * A chat with an image is longer than this. Of such a body only the beginning is kept, and only the members of the object
 * that end in it are read.
 */
const MAX_BYTES = 256 * 1024;
const MAX_NAME = 128;

/** `read` takes each chunk of the body; `name` then gives the model (at most 128 characters) if the body names one. */
export function modelNameReader(req: Pick<Request, 'is'>): {
  read(chunk: Buffer): void;
  name(): string | undefined;
} {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const isJson = Boolean(req.is('json'));
  return {
    read(chunk) {
      if (isJson && bytes < MAX_BYTES) addChunk(chunks, chunk.subarray(0, MAX_BYTES - bytes));
      bytes += chunk.length;
    },
    name() {
      if (bytes === 0 || !isJson) return undefined;
      const text = Buffer.concat(chunks).toString('utf8');
      try {
        const { model } = JSON.parse(bytes > MAX_BYTES ? wholeMembers(text) : text);
        return typeof model === 'string' ? model.slice(0, MAX_NAME) : undefined;
      } catch {
        return undefined; // the body is invalid JSON or incomplete, which the upstream will report
      }
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
