/** Values that follow a JSON schema, and values that break it. */
import type { Random } from '../soak/random.ts';

/** The part of JSON schema that the description of the API uses. */
export interface Schema {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  format?: string;
}

export const ODD_TEXTS = [
  ...['', ' ', '0', '-1', '1e999', 'NaN', 'null', 'true', '[]', '{}', '{"type":"server_vad"}', 'undefined'],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '../../etc/passwd',
    '..',
    '.',
    '%00',
    '%2e%2e%2f',
    'a/b',
    'a\\b',
  ],
  ...[
    '\0',
    '\r\n',
    '\r\nX-Evil: 1',
    '\t',
    '\x7f',
    '\u2028',
    '\ufeff',
    '\ud800',
    'İ',
    'ß',
    '𝄞',
    'é',
    'é',
    '😀'.repeat(50),
  ],
  ...['<script>alert(1)</script>', '"><img src=x>', "'; DROP TABLE", '{{7*7}}', '%s%n', '$(id)', '`id`'],
  ...['x'.repeat(1025), 'x'.repeat(70_000), '9'.repeat(400), `${'['.repeat(5000)}`, 'a,'.repeat(2000)],
];

const KNOWN_TEXTS = [
  ...[
    'auto',
    'multilingual-base',
    'whisper-1',
    'openai/whisper-base',
    'european',
    'cjk',
    'en',
    'German',
    'zh',
  ],
  ...['1', 'on', 'off', 'Hello.', 'json', 'verbose_json', '0.5'],
];

const ODD_VALUES: unknown[] = [
  ...[null, true, false, 0, -0, -1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, 5e-324],
  ...[
    [],
    {},
    [[]],
    [null],
    { a: 1 },
    { toString: 'x' },
    { length: -1 },
    ['a', 'a'],
    { type: 'server_vad', threshold: {} },
  ],
];

export const oddText = (random: Random) => random.pick(ODD_TEXTS);
export const oneIn = (random: Random, count: number) => random.below(count) === 0;

const oddValue = (random: Random): unknown =>
  random.pick([() => random.pick(ODD_VALUES), () => oddText(random), () => nested(random.below(2000))])();

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 ? [value] : { a: value };
  return value;
}

/** A value that fits the schema, but that one of about `fit` of its parts does not. */
export function madeFrom(schema: Schema, random: Random, fit: number): unknown {
  if (oneIn(random, fit)) return oddValue(random);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return random.pick(schema.enum);
  if (schema.anyOf !== undefined) return madeFrom(random.pick(schema.anyOf), random, fit);
  if (schema.type === 'object') return objectOf(schema, random, fit);
  if (schema.type === 'array')
    return Array.from({ length: random.below(4) }, () => madeFrom(schema.items ?? {}, random, fit));
  if (schema.type === 'number' || schema.type === 'integer') return random.below(1000) / 1000;
  if (schema.type === 'boolean') return oneIn(random, 2);
  return random.pick(KNOWN_TEXTS);
}

export function objectOf(schema: Schema, random: Random, fit: number): Record<string, unknown> {
  const { properties = {}, required = [] } = schema;
  const names = Object.keys(properties).filter((name) =>
    required.includes(name) ? !oneIn(random, fit) : oneIn(random, 3),
  );
  const entries = names.map((name): [string, unknown] => [
    name,
    madeFrom(properties[name] ?? {}, random, fit),
  ]);
  if (oneIn(random, fit)) entries.push([oddText(random), oddValue(random)]);
  return Object.fromEntries(entries);
}
