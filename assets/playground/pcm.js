/** Knows sound that is bare samples, with a wav header or without one. */

/** OpenAI's `pcm`, for a server that does not say what its samples are. */
const DEFAULT = { rate: 24_000, channels: 1 };
const PCM = 1;
const EXTENSIBLE = 0xfffe;
/** Servers that stream write a size of about 2 or 4 GiB, or none. */
const UNKNOWN = 0x7fff_0000;
/** Bytes within which the samples of a wav must begin; else it counts as no wav. */
const MAX_HEADER = 65_536;

/** What the headers of an answer say of bare samples; null where they say that it is something else. */
export function bareFormat(headers) {
  const type = headers.get('Content-Type') ?? '';
  if (!/^audio\/(x-)?(pcm|raw)\b/i.test(type)) return null;
  const number = (name) => Number(new RegExp(`\\b${name}=(\\d+)`, 'i').exec(type)?.[1]) || null;
  return {
    rate: number('rate') ?? (Number(headers.get('X-Sample-Rate')) || DEFAULT.rate),
    channels: number('channels') ?? DEFAULT.channels,
  };
}

/**
 * @param bytes the beginning of a wav
 * @returns {rate, channels, at, size} where `at` is the first sample, and `size` is infinite where the header of a
 *   stream does not know the end; undefined while more bytes are needed, and null for
 *   anything but 16-bit samples
 */
export function readWavHeader(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const name = (at) => String.fromCharCode(...bytes.subarray(at, at + 4));
  if (bytes.length >= 12 && (name(0) !== 'RIFF' || name(8) !== 'WAVE')) return null;
  let format = null;
  for (let at = 12; at + 8 <= bytes.length && at < MAX_HEADER; ) {
    const size = view.getUint32(at + 4, true);
    if (name(at) === 'data')
      return format && { ...format, at: at + 8, size: size > 0 && size < UNKNOWN ? size : Infinity };
    if (name(at) === 'fmt ') {
      if (at + 24 > bytes.length) return undefined;
      const coding = view.getUint16(at + 8, true);
      if (![PCM, EXTENSIBLE].includes(coding) || view.getUint16(at + 22, true) !== 16) return null;
      format = { channels: view.getUint16(at + 10, true), rate: view.getUint32(at + 12, true) };
    }
    at += 8 + size + (size % 2);
  }
  return bytes.length < MAX_HEADER ? undefined : null;
}

/** The header of a wav with `size` bytes of 16-bit samples. */
export function wavHeader({ rate, channels }, size) {
  const view = new DataView(new ArrayBuffer(44));
  const text = (at, value) => {
    for (const [i, char] of [...value].entries()) view.setUint8(at + i, char.charCodeAt(0));
  };
  text(0, 'RIFF');
  view.setUint32(4, 36 + size, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true);
  view.setUint16(20, PCM, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * channels * 2, true);
  view.setUint16(32, channels * 2, true);
  view.setUint16(34, 16, true);
  text(36, 'data');
  view.setUint32(40, size, true);
  return view;
}
