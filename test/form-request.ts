/** Multipart forms as clients send them, byte for byte, and the form parser of the gateway without a gateway. */
import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import { readUploadForm } from '../src/http/upload/form.ts';

export interface Part {
  name?: string;
  value: string | Buffer;
  filename?: string;
  type?: string;
}

const BOUNDARY = 'x-boundary-of-a-test';
export const FORM_TYPE = `multipart/form-data; boundary=${BOUNDARY}`;

export function encodeForm(parts: readonly Part[]): Buffer {
  const encoded = parts.map(({ name, value, filename, type }) => {
    const named = name === undefined ? '' : `; name="${name}"`;
    const disposition = `form-data${named}${filename === undefined ? '' : `; filename="${filename}"`}`;
    const head = `Content-Disposition: ${disposition}\r\n${type === undefined ? '' : `Content-Type: ${type}\r\n`}`;
    return Buffer.concat([
      Buffer.from(`--${BOUNDARY}\r\n${head}\r\n`),
      Buffer.from(value),
      Buffer.from('\r\n'),
    ]);
  });
  return Buffer.concat([...encoded, Buffer.from(`--${BOUNDARY}--\r\n`)]);
}

export const formInit = (parts: readonly Part[]): RequestInit => ({
  method: 'POST',
  headers: { 'Content-Type': FORM_TYPE },
  body: new Uint8Array(encodeForm(parts)),
});

/** A request as the parsers need it, whose body comes in pieces of `chunkBytes`. */
export function formRequest(parts: readonly Part[], chunkBytes = 65_536): Request {
  const body = encodeForm(parts);
  const chunks = Array.from({ length: Math.ceil(body.length / chunkBytes) }, (_, i) =>
    body.subarray(i * chunkBytes, (i + 1) * chunkBytes),
  );
  const headers = { 'content-type': FORM_TYPE, 'content-length': `${body.length}` };
  return Object.assign(Readable.from(chunks), { headers }) as unknown as Request;
}

/** What the parser makes of a form: the text fields, and the bytes of the file. */
export async function readParts(parts: readonly Part[], texts: readonly string[], chunkBytes?: number) {
  const req = formRequest(parts, chunkBytes);
  let file: Buffer | undefined;
  let memory = 0;
  const reading = readUploadForm(req, {} as Response, {
    field: 'file',
    texts,
    maxFileBytes: 16 * 1024 * 1024,
    async storeFile(content) {
      file = Buffer.concat(await content.toArray());
      return { bytes: file.length };
    },
    takeFieldMemory(bytes) {
      memory += bytes;
      return true;
    },
  });
  const { fields, isNamed } = await reading.done;
  return { fields, file, isNamed, memory };
}
