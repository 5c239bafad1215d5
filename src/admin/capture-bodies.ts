/**
 * What is in the bodies of a capture, to hear and to read: the sound of an upload or of speech, the fields of a form, and
 * text. A sound has the type that its first bytes say, never the one that a client names, and is no page by that.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sniffAfterTag, sniffContainer, tagLength } from '../audio/sniff.ts';
import { CAPTURE_FILES, type StoredCapture } from '../capture/capture-folder.ts';
import { excerpt } from '../errors.ts';

/** A longer body is only downloaded. */
const MOST_BYTES = 64 * 1024 ** 2;
const TEXT_CHARS = 64 * 1024;
const FIELDS = 30;
const FIELD_CHARS = 500;

export interface Sound {
  type: string;
  bytes: Buffer;
}

export interface BodyContent {
  sound: Sound | null;
  /** The fields of a form, a file with its size. */
  fields: { name: string; value: string }[];
  /** Null for what is no text. */
  text: string | null;
}

export async function contentOf(capture: StoredCapture, body: 'request' | 'response'): Promise<BodyContent> {
  const size = body === 'request' ? capture.requestBytes : capture.responseBytes;
  if (size > MOST_BYTES) return NOTHING;
  const bytes = await readFile(join(capture.path, CAPTURE_FILES[body]));
  const parts = body === 'request' ? partsOf(bytes, boundaryOf(capture)) : null;
  if (parts === null) return { sound: soundOf(bytes), fields: [], text: textOf(bytes) };
  const sounds = parts.map(({ content }) => soundOf(content));
  const fields = parts.slice(0, FIELDS).map(({ name, fileName, content }) => ({
    name,
    value:
      fileName === null ? excerpt(content.toString(), FIELD_CHARS) : `${fileName}, ${content.length} bytes`,
  }));
  return { sound: sounds.find((sound) => sound !== null) ?? null, fields, text: null };
}

const NOTHING: BodyContent = { sound: null, fields: [], text: null };

/** The types of what browsers play, by the names of containers. */
const TYPES: Readonly<Record<string, string>> = {
  wav: 'audio/wav',
  flac: 'audio/flac',
  ogg: 'audio/ogg',
  'ogg vorbis': 'audio/ogg',
  mp3: 'audio/mpeg',
  aac: 'audio/aac',
  webm: 'audio/webm',
  mp4: 'audio/mp4',
};

function soundOf(bytes: Buffer): Sound | null {
  const container =
    tagLength(bytes) > 0 ? sniffAfterTag(bytes.subarray(tagLength(bytes))) : sniffContainer(bytes);
  const type = TYPES[container?.name ?? ''];
  return type === undefined ? null : { type, bytes };
}

/** JSON is laid out. What holds control characters is no text. */
function textOf(bytes: Buffer): string | null {
  const text = bytes.toString('utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (bytes.length === 0 || /[\0-\x08\x0e-\x1a\x1c-\x1f\ufffd]/.test(text.slice(0, TEXT_CHARS))) return null;
  try {
    return excerpt(JSON.stringify(JSON.parse(text), null, 2), TEXT_CHARS);
  } catch {
    return excerpt(text, TEXT_CHARS);
  }
}

function boundaryOf({ meta }: StoredCapture): string | null {
  const headers = Object(meta.request_headers) as Record<string, unknown>;
  const [, quoted, plain] =
    /^multipart\/form-data;.*boundary=(?:"([^"]+)"|([^\s;]+))/i.exec(String(headers['content-type'])) ?? [];
  return quoted ?? plain ?? null;
}

interface Part {
  name: string;
  fileName: string | null;
  content: Buffer;
}

/** The parts of a form (RFC 7578); null for a body of another kind. A part that broke off ends with the body. */
function partsOf(bytes: Buffer, boundary: string | null): Part[] | null {
  if (boundary === null) return null;
  const parts: Part[] = [];
  const mark = `--${boundary}`;
  for (let at = bytes.indexOf(mark); at >= 0 && parts.length < FIELDS; ) {
    const head = bytes.indexOf('\r\n\r\n', at);
    if (head < 0) break;
    const next = bytes.indexOf(`\r\n${mark}`, head + 2);
    const headers = bytes.toString('utf8', at + mark.length, Math.min(head, at + 4096));
    const content = bytes.subarray(head + 4, next < 0 ? bytes.length : Math.max(next, head + 4));
    parts.push({
      name: /[; ]name="([^"]*)"/i.exec(headers)?.[1] ?? '',
      fileName: /filename="([^"]*)"/i.exec(headers)?.[1] ?? null,
      content,
    });
    at = next < 0 ? -1 : next + 2;
  }
  return parts;
}
