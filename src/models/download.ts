/**
 * Downloads one file from the hub, and resumes a download that was cut. While the file grows, it is `<target>.part`,
 * with the ETag of the server in a file beside it. It gets its final name only when size and hash are right, so a file
 * with the final name is always complete.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { requireSpace } from './disk.ts';
import { type GetAnswer, httpGet } from './http-get.ts';
import type { WrittenFile } from './import/hashed-file.ts';
import { UnreachableError } from './proxy-connection.ts';

export interface DownloadRequest {
  url: string;
  target: string;
  /** The pinned size; null when it is unknown. The server must then send it, and its LFS headers without a `sha256`. */
  bytes: number | null;
  sha256: string | null;
  token?: string | undefined;
  signal: AbortSignal;
  onProgress?: (doneBytes: number, totalBytes: number | null) => void;
  limits?: Partial<DownloadLimits> | undefined;
}

export interface DownloadLimits {
  connectTimeoutMs: number;
  /** The longest wait for the first byte of the answer, and between two pieces of the body. */
  stallTimeoutMs: number;
  /** The number of failures in a row that end the download. Any progress of the file starts the count again. */
  attempts: number;
  backoffMs: number;
}

const LIMITS: DownloadLimits = {
  connectTimeoutMs: 5000,
  stallTimeoutMs: 30_000,
  attempts: 4,
  backoffMs: 1000,
};
const MAX_RETRY_AFTER_MS = 30_000;
/** What a write fails with on a full disk, or where the user may write no more. */
const FULL = new Set(['ENOSPC', 'EDQUOT']);

/** `retry` is false when the same request would fail the same way again. */
class DownloadError extends Error {
  override readonly name = 'DownloadError';
  readonly retry: boolean;
  readonly retryAfterMs: number | undefined;
  constructor(message: string, retry: boolean, retryAfterMs?: number) {
    super(message);
    this.retry = retry;
    this.retryAfterMs = retryAfterMs;
  }
}

interface Part {
  path: string;
  etagPath: string;
}

/** The files of a download that is not whole yet: what has come of it, and the ETag of that. */
export const partOf = (target: string): Part => ({
  path: `${target}.part`,
  etagPath: `${target}.part.etag`,
});

/**
 * Downloads a file to `request.target`, with retries.
 * @returns the size and the SHA-256 (hexadecimal) of the file, which were verified
 * @throws UnreachableError when the host never answered, Error for other failures, `signal.reason` after an abort
 */
export async function download(request: DownloadRequest): Promise<WrittenFile> {
  return await new Download(request).run();
}

class Download {
  readonly #request: DownloadRequest;
  readonly #limits: DownloadLimits;
  readonly #part: Part;
  #hasAnswered = false;

  constructor(request: DownloadRequest) {
    this.#request = request;
    this.#limits = { ...LIMITS, ...request.limits };
    this.#part = partOf(request.target);
  }

  async run(): Promise<WrittenFile> {
    const { signal, target } = this.#request;
    const { attempts, backoffMs } = this.#limits;
    let failures = 0;
    let reached = await sizeOf(this.#part.path);
    for (;;) {
      signal.throwIfAborted();
      try {
        return await this.#attempt();
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof DownloadError && !error.retry) throw error;
        if (FULL.has((error as NodeJS.ErrnoException).code ?? '')) {
          await this.#discard(); // a part that cannot grow must not take the disk from everybody else
          throw fullDisk(dirname(target), error);
        }
        // When the hub never answered, the next source is tried at once. After a broken connection it may come back.
        if (error instanceof UnreachableError && !this.#hasAnswered) throw error;
        const size = await sizeOf(this.#part.path);
        failures = size > reached ? 1 : failures + 1;
        reached = Math.max(reached, size); // bytes that are downloaded again after a restart are no progress
        if (failures >= attempts) throw error;
        const asked = error instanceof DownloadError ? error.retryAfterMs : undefined;
        const restMs = Math.min(asked ?? backoffMs * 2 ** (failures - 1), MAX_RETRY_AFTER_MS);
        await sleep(restMs, undefined, { signal });
      }
    }
  }

  async #attempt(): Promise<WrittenFile> {
    const { url, token, signal, bytes, sha256 } = this.#request;
    const part = this.#part;
    const etag = await readFile(part.etagPath, 'utf8').catch(() => '');
    let offset = await sizeOf(part.path);
    // Without an ETag and without a pinned hash, it could not be checked that both parts are of the same file.
    if ((etag === '' && sha256 === null) || (bytes !== null && offset > bytes)) offset = 0;
    if (offset > 0 && offset === bytes && sha256 !== null)
      return this.#finish(await hashPrefix(part.path, offset), offset, sha256, true);

    const headers: Record<string, string> = { 'user-agent': 'voxgate', 'accept-encoding': 'identity' };
    if (offset > 0) headers.range = `bytes=${offset}-`;
    if (offset > 0 && etag !== '') headers['if-range'] = etag;
    const { connectTimeoutMs, stallTimeoutMs: answerTimeoutMs } = this.#limits;
    const answer = await httpGet(url, { headers, token, signal, connectTimeoutMs, answerTimeoutMs });
    this.#hasAnswered = true;
    const { response } = answer;
    try {
      const start = await this.#startOf(response, offset);
      const expected = await expectations(answer, this.#request, start);
      const tag = String(response.headers.etag ?? '');
      await writeFile(part.etagPath, tag.startsWith('W/') ? '' : tag);
      const hash = start > 0 ? await hashPrefix(part.path, start) : createHash('sha256');
      const size = await this.#receive(response.body, hash, start, expected.bytes);
      if (size < expected.bytes)
        throw new DownloadError(`the connection ended after ${size} of ${expected.bytes} bytes`, true);
      return await this.#finish(hash, size, expected.sha256, start > 0);
    } finally {
      response.body.destroy();
    }
  }

  /** The offset in the file at which the body of the answer begins. @throws DownloadError for a status without a body */
  async #startOf({ statusCode: status, headers }: GetAnswer['response'], offset: number): Promise<number> {
    const { host, pathname } = new URL(this.#request.url);
    if (status === 200) {
      if (isWebPage(headers, this.#request.bytes))
        throw new DownloadError(
          `the answer of ${host} is a web page, not weights: is there a login or a proxy between?`,
          false,
        );
      return 0;
    }
    if (status === 206) {
      const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(String(headers['content-range']));
      if (offset > 0 && Number(range?.[1]) === offset) return offset;
      await this.#discard();
      throw new DownloadError('the server sent another range than the one requested', true);
    }
    if (status === 416) {
      await this.#discard();
      const why = 'the server cannot continue the partial file; it is downloaded from the start';
      throw new DownloadError(why, true);
    }
    if (status === 401 || status === 403) {
      const why = `${host} answered ${status}: set HF_TOKEN to a token that may read this file`;
      throw new DownloadError(why, false);
    }
    const after = Number(headers['retry-after']);
    throw new DownloadError(
      `${host} answered ${status} for ${pathname}`,
      status === 429 || status >= 500,
      after > 0 ? after * 1000 : undefined,
    );
  }

  async #receive(
    body: GetAnswer['response']['body'],
    hash: Hash,
    start: number,
    expected: number,
  ): Promise<number> {
    const { stallTimeoutMs } = this.#limits;
    let size = start;
    const stalled = () =>
      body.destroy(new DownloadError(`no data for ${stallTimeoutMs} ms after ${size} bytes`, true));
    const timer = setTimeout(stalled, stallTimeoutMs);
    const handle = await open(this.#part.path, start > 0 ? 'a' : 'w');
    try {
      await handle.truncate(start);
      for await (const chunk of body as AsyncIterable<Buffer>) {
        timer.refresh();
        if (size + chunk.length > expected) {
          throw new DownloadError(`the hub sends more than the expected ${expected} bytes`, false);
        }
        hash.update(chunk);
        // A disk that becomes full takes a part of a write, and only the next one fails. This writes until it does.
        await handle.appendFile(chunk);
        size += chunk.length;
        this.#request.onProgress?.(size, expected);
      }
      await handle.sync();
      return size;
    } finally {
      clearTimeout(timer);
      await handle.close();
    }
  }

  async #finish(hash: Hash, size: number, expected: string, resumed: boolean): Promise<WrittenFile> {
    const { bytes, target } = this.#request;
    const sha256 = hash.digest('hex');
    if (sha256 !== expected || (bytes !== null && size !== bytes)) {
      await this.#discard();
      // The two parts of a resumed download may be of different files, so it is worth another try from the start.
      throw new DownloadError(
        `sha256 ${sha256} of ${size} bytes, expected ${expected} of ${bytes ?? size}`,
        resumed,
      );
    }
    await rename(this.#part.path, target);
    await rm(this.#part.etagPath, { force: true });
    return { bytes: size, sha256 };
  }

  async #discard(): Promise<void> {
    await rm(this.#part.path, { force: true });
    await rm(this.#part.etagPath, { force: true });
  }
}

/** A server may know no better type for weights, but those have their size. */
function isWebPage(headers: GetAnswer['response']['headers'], bytes: number | null): boolean {
  const isHtml = /^text\/html\b/i.test(String(headers['content-type'] ?? ''));
  return isHtml && (bytes === null || Number(headers['content-length']) !== bytes);
}

/** The size and hash that the whole file must have: the pinned values, or else those in the LFS headers of the hub. */
async function expectations(answer: GetAnswer, request: DownloadRequest, start: number) {
  const linked = answer.header('x-linked-etag')?.replaceAll('"', '').toLowerCase();
  const published = linked && /^[0-9a-f]{64}$/.test(linked) ? linked : null;
  if (request.sha256 !== null && published !== null && published !== request.sha256) {
    throw new DownloadError(`the hub offers sha256 ${published}, expected ${request.sha256}`, false);
  }
  const sha256 = request.sha256 ?? published;
  if (sha256 === null) {
    throw new DownloadError('the hub names no sha256 for this file, so it cannot be verified', false);
  }
  const length = Number(answer.response.headers['content-length'] ?? Number.NaN);
  const announced = Number.isNaN(length) ? null : start + length;
  if (request.bytes !== null && announced !== null && announced > request.bytes) {
    throw new DownloadError(`the hub offers ${announced} bytes, expected ${request.bytes}`, false);
  }
  const bytes = request.bytes ?? announced;
  if (bytes === null) throw new DownloadError('the hub names no size for this file', false);
  if (request.bytes === null)
    await requireSpace(dirname(request.target), bytes - start).catch((error: Error) => {
      throw new DownloadError(error.message, false);
    });
  return { bytes, sha256 };
}

const fullDisk = (dir: string, cause: unknown) =>
  new Error(`${dir} became full. Free some space, or set SVC_MODEL_DIR to another disk`, { cause });

async function hashPrefix(path: string, length: number): Promise<Hash> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { end: length - 1 })) hash.update(chunk as Buffer);
  return hash;
}

async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    (info) => info.size,
    () => 0,
  );
}
