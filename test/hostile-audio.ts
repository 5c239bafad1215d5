/**
 * Makes files that no encoder writes: small ones that cost a decoder much. Their C++ twins, with more kinds of them,
 * are in native/test.
 */

/** Packs bits as Vorbis does, which fills a byte from its lowest bit. */
class Bits {
  readonly #bits: number[] = [];

  put(value: number, count: number): this {
    for (let i = 0; i < count; i += 1) this.#bits.push((value >>> i) & 1);
    return this;
  }

  toBuffer(): Buffer {
    const bytes = Buffer.alloc(Math.ceil(this.#bits.length / 8));
    this.#bits.forEach((bit, i) => {
      bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (bit << (i & 7));
    });
    return bytes;
  }
}

/** Writes a page as https://www.rfc-editor.org/rfc/rfc3533#section-6 describes it. */
function oggPage(number: number, packet: Buffer): Buffer {
  const header = Buffer.alloc(27);
  header.write('OggS');
  header[5] = number === 0 ? 2 : 0;
  header.fill(0xff, 6, 14); // the position is not known
  header.writeUInt32LE(1, 14);
  header.writeUInt32LE(number, 18);
  const lacing = [...Array<number>(Math.floor(packet.length / 255)).fill(255), packet.length % 255];
  header[26] = lacing.length;
  return Buffer.concat([header, Buffer.from(lacing), packet]);
}

/**
 * Makes 3 kB of Ogg Vorbis whose set-up header announces 255 codebooks of 16 million entries, 55 GB in memory
 * (https://xiph.org/vorbis/doc/Vorbis_I_spec.html#x1-590004).
 */
export function vorbisOfGigabytes(): Buffer {
  const identification = Buffer.alloc(30);
  identification.write('\x01vorbis', 'latin1');
  identification[11] = 1; // one channel
  identification.writeUInt32LE(16_000, 12);
  identification.set([0xd6, 1], 28); // block sizes and framing
  const comments = Buffer.concat([Buffer.from('\x03vorbis', 'latin1'), Buffer.alloc(8), Buffer.from([1])]);
  const setup = new Bits();
  for (const byte of Buffer.from('\x05vorbis', 'latin1')) setup.put(byte, 8);
  setup.put(254, 8);
  for (let i = 0; i < 255; i += 1) {
    // Each codebook has the mark, one dimension, 2^24 - 1 entries in order, all of 24 bits, and no values.
    setup.put(0x564342, 24).put(1, 16).put(0xffffff, 24).put(1, 1).put(23, 5).put(0xffffff, 24).put(0, 4);
  }
  return Buffer.concat([oggPage(0, identification), oggPage(1, comments), oggPage(2, setup.toBuffer())]);
}

/**
 * Makes two MP3 frames, so that the file passes for MP3, then headers that each announce a frame of a length which
 * the decoder has to look for and never finds: no three of a kind stand at equal distances. It costs about 2 s a MiB.
 */
export function endlessSearch(bytes: number): Buffer {
  const versions = [0xfb, 0xf3, 0xe3, 0xfd, 0xff, 0xf5, 0xf7];
  const searched = 576; // headers: 2304 bytes
  const kinds: number[] = [];
  const fits = (kind: number): boolean => {
    for (let k = 1; k <= Math.min(searched, kinds.length / 2); k += 1)
      if (kinds.at(-k) === kind && kinds.at(-2 * k) === kind) return false;
    return true;
  };
  while (kinds.length < 4096) {
    let kind = 0;
    while (!fits(kind)) kind += 1;
    kinds.push(kind);
  }
  const frame = Buffer.alloc(417);
  frame.set([0xff, 0xfb, 0x90, 0]);
  const block = Buffer.from(
    kinds.flatMap((kind) => [
      0xff,
      versions[kind % versions.length] ?? 0,
      Math.floor(kind / versions.length) << 2,
      0,
    ]),
  );
  const file = Buffer.alloc(bytes);
  for (let at = 2 * frame.length; at < bytes; at += block.length) block.copy(file, at);
  frame.copy(file, 0);
  frame.copy(file, frame.length);
  return file;
}
