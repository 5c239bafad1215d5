/**
 * Receives the whole body of a speech or chat call before the call takes the slot, so that a client that is slow to
 * send holds nothing that others need. A small body stays in memory, where it has one of a bounded number of places; a
 * larger one goes to a file, by the rules of uploads and with a place among them.
 */
import { createReadStream } from 'node:fs';
import { PassThrough, Readable } from 'node:stream';
import type { Request, Response } from 'express';
import type { Budgets } from '../../limits/budgets.ts';
import { createUploadPlaces, type UploadPlaces } from '../../limits/upload-places.ts';
import { readUpTo } from '../../streams.ts';
import {
  type Arrival,
  announcedBytes,
  arrivalOf,
  type BodyStorage,
  continueIfAsked,
  hasBody,
  tooLarge,
  watchArrival,
} from './request-body.ts';
import type { SpooledFile } from './spool.ts';

export interface ReceiveOptions {
  /** Aborts when the client leaves or ends its body too early, and when the gateway stops. */
  signal: AbortSignal;
  /** Called with each chunk as it arrives, also of a body that is refused later. */
  onChunk(chunk: Buffer): void;
}

export type ReceiveBody = ReturnType<typeof bodyReceiver>;

export function bodyReceiver(storage: BodyStorage, { inMemory, memoryBytes }: Budgets['proxied']) {
  const { spool, places, maxBytes, limits } = storage;
  const memory = createUploadPlaces({ maxUploads: inMemory, graceMs: limits.graceMs });

  /** Reads a body that has a place. `held` learns of what must be freed. */
  async function read(
    arrival: Arrival,
    held: Held,
    onChunk: ReceiveOptions['onChunk'],
  ): Promise<() => Readable> {
    const { req } = arrival;
    const source = new PassThrough();
    source.on('error', () => undefined); // the reader of `source` gets the error too
    const stop = watchArrival(arrival, limits, {
      mostBytes: maxBytes,
      tooLarge: tooLarge(maxBytes),
      isReading: () => !source.writableNeedDrain,
      onChunk,
      fail: (reason) => source.destroy(reason as Error),
    });
    req.pipe(source);
    try {
      const chunks: Buffer[] = [];
      if (announcedBytes(req) <= memoryBytes) {
        const small = source.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
        if (await readUpTo(small, memoryBytes, chunks)) return () => Readable.from(chunks);
        // A chunked body, whose length was not announced, turned out too large for memory: it goes to a file.
        await places.take(arrival.claim);
        memory.release(arrival.claim);
        held.places = places;
      }
      const file = await spool.store(arrival.claim.network, source, Buffer.concat(chunks));
      held.file = file;
      return () => createReadStream(file.path);
    } finally {
      stop();
    }
  }

  /**
   * Resolves when the body is complete, with null when the request has none.
   * @throws GatewayError `file_too_large`, `request_timeout`, `overloaded` or `storage_unavailable`; `signal.reason`
   *   after an abort
   */
  return async (req: Request, res: Response, { signal, onChunk }: ReceiveOptions) => {
    if (!hasBody(req)) {
      continueIfAsked(req, res);
      return null;
    }
    const announced = announcedBytes(req);
    if (announced > maxBytes) throw tooLarge(maxBytes);
    const arrival = arrivalOf(req, signal, limits);
    const isSmall = announced <= memoryBytes;
    const held: Held = { places: isSmall ? memory : places, file: null };
    await held.places.take(arrival.claim);
    const release = () => {
      void (held.file?.remove() ?? Promise.resolve()).finally(() => held.places.release(arrival.claim));
    };
    try {
      if (!isSmall) await spool.assertRoom(arrival.claim.network, announced);
      arrival.signal.throwIfAborted();
      if (continueIfAsked(req, res)) arrival.balance.restart(limits.graceMs); // the client sends only after a round trip
      return received(await read(arrival, held, onChunk), release);
    } catch (error) {
      release(); // removes the file in the background, so that the answer does not wait for the disk
      throw error;
    }
  };
}

interface Held {
  places: UploadPlaces;
  file: SpooledFile | null;
}

/** @param content begins to read the body */
function received(content: () => Readable, release: () => void) {
  let stream: Readable | null = null;
  return {
    /** Reads all of the body, once. When it was read, what it held is free. */
    open(): Readable {
      stream = content();
      return stream.once('close', release);
    },
    /** Frees what the body holds. Idempotent. */
    release(): void {
      if (stream === null) release();
      else stream.destroy();
    },
  };
}
