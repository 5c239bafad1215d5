/** Makes requests by chance: each follows the description of the API, and then breaks it in some places. */
import type { Random } from '../soak/random.ts';
import { madeFrom, ODD_TEXTS, objectOf, oddText, oneIn, type Schema } from './values.ts';

export interface Operation {
  method: string;
  path: string;
  /** The schema of the body by its content type. */
  bodies: [type: string, schema: Schema][];
  query: string[];
  /** What it may answer, by status. */
  answers: Record<string, { content?: object }>;
}

export interface MadeRequest {
  method: string;
  target: string;
  headers: Record<string, string>;
  body: Buffer;
}

interface Parts {
  random: Random;
  /** A file of audio. */
  speech: Buffer;
  /** Ids of requests that may have been captured. */
  captured: readonly string[];
}

const KNOWN_NAMES = ['multilingual-base', 'whisper-1', 'openai/whisper-base', 'auto', 'x'];
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE'];
const HEADERS: readonly [name: string, values: readonly string[]][] = [
  ['Accept', ['*/*', 'application/json', 'text/html', 'text/event-stream', 'image/*;q=x', ',,', '']],
  ['Accept-Encoding', ['gzip', 'identity;q=0', '*;q=0', 'br;q=2', 'x']],
  ['Accept-Language', ['de', '*', 'x'.repeat(500)]],
  ['Content-Encoding', ['gzip', 'identity', 'br', 'deflate', 'zip', 'gzip, gzip']],
  [
    'Content-Type',
    ['text/plain', 'application/json; charset=klingon', 'application/json; charset=utf-16', '/', 'a'],
  ],
  [
    'Content-Type',
    [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary="x',
      'multipart/mixed; boundary=x',
    ],
  ],
  ['Cookie', ['voxgate_session=x', ';;=', 'a=b; voxgate_session=', 'x'.repeat(4000)]],
  ['Authorization', ['Bearer x', 'Basic !!', 'Bearer', '']],
  ['HX-Request', ['true', 'false', 'x']],
  ['If-Modified-Since', ['x', 'Thu, 01 Jan 1970 00:00:00 GMT']],
  ['If-Match', ['*', '"x"']],
  ['If-None-Match', ['*', 'W/"x"', ',']],
  ['Range', ['bytes=0-0', 'bytes=-1', 'bytes=5-1', 'bytes=9999999-', 'items=0-1', 'bytes=0-0,2-3', 'bytes=']],
  ['Prefer', ['wait=1', 'wait=x', 'respond-async']],
  ['X-Request-ID', ['constructor', '__proto__', '..', 'x y', 'x'.repeat(300), 'one', '\xe9']],
  ['X-HTTP-Method-Override', ['DELETE']],
  ['X-Forwarded-For', ['127.0.0.1', 'x', '::1, y']],
  ['User-Agent', ['', '\xff\xfe', 'x'.repeat(3000)]],
];

/** A lone surrogate has no encoding in UTF-8. */
const encoded = (text: string) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'));
/** Makes text that Node's client accepts in a target. */
const inTarget = (text: string) => text.replace(/[^!-~]/g, (letter) => encoded(letter));

export function makeRequest(operation: Operation, parts: Parts): MadeRequest {
  const { random } = parts;
  const fit = random.pick([3, 8, 30, 1000]);
  const method = oneIn(random, 12) ? random.pick(METHODS) : operation.method.toUpperCase();
  const known = operation.path.includes('{requestId}') ? [...parts.captured, 'x'] : KNOWN_NAMES;
  const param = () => {
    const text = oneIn(random, 4) ? oddText(random).slice(0, 3000) : random.pick(known);
    return oneIn(random, 4) ? inTarget(text) : encoded(text);
  };
  const path = operation.path.replace(/\{\w+\}/g, param);
  const headers: Record<string, string> = {};
  const body = makeBody(operation, parts, fit, headers);
  while (oneIn(random, 2)) {
    const [name, values] = random.pick(HEADERS);
    headers[name] = random.pick(values);
  }
  return { method, target: path + makeQuery(operation, random), headers, body };
}

function makeQuery({ query }: Operation, random: Random): string {
  if (!oneIn(random, 4)) return '';
  const name = () => random.pick([...query, 'only', 'a[]', 'a[b]', '__proto__[x]', 'a', '%', '']);
  const pairs = Array.from(
    { length: random.below(5) },
    () => `${name()}=${inTarget(oddText(random).slice(0, 2000))}`,
  );
  return `?${pairs.join('&').replaceAll('#', '%23')}`;
}

function makeBody({ bodies }: Operation, parts: Parts, fit: number, headers: Record<string, string>): Buffer {
  const { random } = parts;
  if (bodies.length === 0 && !oneIn(random, 8)) return Buffer.alloc(0);
  const [type, schema] =
    bodies.length > 0 ? random.pick(bodies) : (['application/json', {}] as [string, Schema]);
  headers['Content-Type'] = type;
  let body: Buffer;
  if (type === 'multipart/form-data') body = multipart(schema, parts, fit, headers);
  else if (type === 'application/x-www-form-urlencoded') body = Buffer.from(urlEncoded(schema, random, fit));
  else body = Buffer.from(jsonText(schema, random, fit));
  if (oneIn(random, fit)) body = body.subarray(0, random.below(body.length + 1));
  if (oneIn(random, fit) && body.length > 0) body[random.below(body.length)] = random.below(256);
  return body;
}

function jsonText(schema: Schema, random: Random, fit: number): string {
  const text = JSON.stringify(madeFrom(schema, random, fit)) ?? '';
  if (!oneIn(random, fit)) return text;
  const raw = [
    '{"a":1,"a":2}',
    '{"__proto__":{"x":1}}',
    '\ufeff{}',
    '[1,]',
    '1e400',
    '{"n":1e999}',
    '"',
    '{"a":01}',
    'NaN',
    ' ',
    text + text,
  ];
  return random.pick(raw);
}

/** The fields of a form: names and values as text, some of them twice, or in brackets. */
function fieldsOf(schema: Schema, random: Random, fit: number): [name: string, value: string][] {
  const asText = (value: unknown) => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
  const fields = Object.entries(objectOf(schema, random, fit))
    .filter(([name]) => name !== 'file')
    .flatMap(([name, value]): [string, string][] =>
      Array.isArray(value) ? value.map((item) => [`${name}[]`, asText(item)]) : [[name, asText(value)]],
    );
  while (oneIn(random, fit)) {
    const [name = 'model', value = 'auto'] = random.pick([...fields, ['file', 'text'] as [string, string]]);
    const spell = random.pick([
      (n: string) => n,
      (n: string) => `${n}[]`,
      (n: string) => `${n}[a]`,
      (n: string) => `${n}[0]`,
      (n: string) => `${n}[a][b]`,
      (n: string) => `${n}[`,
      (n: string) => n.toUpperCase(),
      () => random.pick(ODD_TEXTS).slice(0, 200),
    ]);
    fields.push([spell(name), value]);
  }
  return fields;
}

const urlEncoded = (schema: Schema, random: Random, fit: number) =>
  fieldsOf(schema, random, fit)
    .map(([name, value]) => `${inTarget(name)}=${inTarget(value)}`)
    .join(random.pick(['&', '&', '&', ';', '&&']));

function multipart(
  schema: Schema,
  { random, speech }: Parts,
  fit: number,
  headers: Record<string, string>,
): Buffer {
  const boundary = oneIn(random, fit)
    ? random.pick(['x', '-', "'()+_,-./:=?", 'y'.repeat(70), 'y'.repeat(200)])
    : 'boundary';
  headers['Content-Type'] = `multipart/form-data; boundary="${boundary}"`;
  const parts = fieldsOf(schema, random, fit).map(([name, value]) =>
    part(boundary, `; name="${name}"`, Buffer.from(value)),
  );
  for (
    let files = oneIn(random, fit) ? random.below(4) : Number(('file' in (schema.properties ?? {})));
    files > 0;
    files--
  ) {
    const bytes = random.pick([
      speech,
      speech,
      speech.subarray(0, random.below(speech.length)),
      random.bytes(200),
      Buffer.alloc(0),
    ]);
    const name = random.pick([
      'a.wav',
      'a.wav',
      '',
      '../../a',
      'a"b',
      'C:\\a',
      `${'a'.repeat(5000)}`,
      'a.m3u8',
    ]);
    parts.splice(
      random.below(parts.length + 1),
      0,
      part(boundary, `; name="file"; filename="${name}"`, bytes),
    );
  }
  const end = oneIn(random, fit) ? '' : `--${boundary}--\r\n`;
  return Buffer.concat([...parts, Buffer.from(end)]);
}

const part = (boundary: string, disposition: string, value: Buffer) =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data${disposition}\r\n\r\n`),
    value,
    Buffer.from('\r\n'),
  ]);
