/**
 * Random access to a file whose contents are not trusted. No read goes past the end, and no memory is allocated for a
 * size that only a header claims.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { notImportable } from './failure.ts';

export class BoundedFile implements AsyncDisposable {
  readonly path: string;
  readonly size: number;
  readonly #handle: FileHandle;

  private constructor(path: string, size: number, handle: FileHandle) {
    this.path = path;
    this.size = size;
    this.#handle = handle;
  }

  /** @throws GatewayError `not_importable` for a folder, a pipe or a device, which would keep the thread waiting */
  static async open(path: string): Promise<BoundedFile> {
    const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const info = await handle.stat();
      if (!info.isFile()) throw notImportable(`${path} is not a regular file.`);
      return new BoundedFile(path, info.size, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** @throws GatewayError `not_importable` when `length` bytes at `offset` are not all in the file */
  assertWithin(offset: number, length: number): void {
    if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(length) || offset < 0 || length < 0) {
      throw notImportable(`${this.path} is damaged: impossible offset ${offset} or length ${length}.`);
    }
    if (offset + length > this.size) {
      throw notImportable(
        `${this.path} is cut short: ${length} bytes expected at ${offset}, but it ends at ${this.size}.`,
      );
    }
  }

  /** Reads `length` bytes at `offset`. @throws as `assertWithin` */
  async read(offset: number, length: number): Promise<Buffer> {
    this.assertWithin(offset, length);
    const buffer = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#handle.read(buffer, filled, length - filled, offset + filled);
      if (bytesRead === 0) throw notImportable(`${this.path} was cut while it was read.`);
      filled += bytesRead;
    }
    return buffer;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#handle.close();
  }
}

/** Reads small little-endian fields one after the other. It reads ahead, so that not every field is a system call. */
export class FieldReader {
  offset = 0;
  readonly #file: BoundedFile;
  #window: Buffer = Buffer.alloc(0);
  #windowStart = 0;

  constructor(file: BoundedFile) {
    this.#file = file;
  }

  async bytes(length: number): Promise<Buffer> {
    const end = this.offset + length;
    if (this.offset < this.#windowStart || end > this.#windowStart + this.#window.length) {
      const wanted = Math.max(length, Math.min(4096, this.#file.size - this.offset));
      this.#window = await this.#file.read(this.offset, wanted);
      this.#windowStart = this.offset;
    }
    const start = this.offset - this.#windowStart;
    this.offset = end;
    return this.#window.subarray(start, start + length);
  }

  async u8(): Promise<number> {
    return (await this.bytes(1)).readUInt8();
  }

  async u16(): Promise<number> {
    return (await this.bytes(2)).readUInt16LE();
  }

  async u32(): Promise<number> {
    return (await this.bytes(4)).readUInt32LE();
  }

  skip(length: number): void {
    this.#file.assertWithin(this.offset, length);
    this.offset += length;
  }
}
