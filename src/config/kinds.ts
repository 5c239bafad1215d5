/** The kinds of values that settings take, each with what is allowed and how the text becomes a value. */
import { isIP } from 'node:net';
import { join } from 'node:path';
import { distance } from 'fastest-levenshtein';
import { z } from 'zod';
import { socketPathOf } from '../address.ts';
import { cacheFolder, homeFolder } from '../machine.ts';
import { isTruthy } from '../truthy.ts';

export const number = (min: number, max: number) =>
  between(min, max, `Expected a number from ${min} to ${max}`);
export const integer = (min: number, max: number) => {
  const says = `Expected a whole number from ${min} to ${max}`;
  return between(min, max, says).int(says);
};
const between = (min: number, max: number, says: string) =>
  z.coerce.number(says).min(min, says).max(max, says);
/**
 * Items between commas. Some lists restrict who may do what, and without an item they would restrict nothing, so a text
 * of commas alone is refused.
 */
export const list = z
  .string()
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  )
  .refine((items) => items.length > 0, 'Expected at least one item');
/** What a header carries the same way from every client (RFC 9110, section 5.5). */
const ASCII = /^[\x20-\x7e]+$/;
export const key = z.string().regex(ASCII, 'Expected ASCII characters');

export interface NamedKey {
  /** What log and metrics call the key's requests; undefined for a key without a name. */
  readonly name: string | undefined;
  readonly key: string;
}

/**
 * True for a name whose key a template left out; the name would be the key. Base64 ends with `=` too, but its length is a
 * multiple of four, and one that is shorter than this is no key.
 */
const lacksKey = (item: string) =>
  /^[A-Za-z][\w.-]{0,63}=$/.test(item) && (item.length < 16 || item.length % 4 !== 0);

/** Keys, or pairs of name=key. The `=` at the end of a key in base64 names nothing. */
export const keys = list
  .refine((all) => all.every((item) => ASCII.test(item)), 'Expected keys of ASCII characters')
  .refine((all) => !all.some(lacksKey), 'Expected a key after each name=')
  .transform((items): NamedKey[] =>
    items.map((item) => {
      const [, name, named] = /^([A-Za-z][\w.-]{0,63})=([^=].*)$/.exec(item) ?? [];
      return { name, key: named ?? item };
    }),
  );
/**
 * Sites, as browsers name them in `Origin`: in lower case, and without the usual port of the scheme. `:*` is any port.
 * `null` names no site: every page of a file or in a sandbox sends it, also one that another site has put there.
 */
export const origins = list.transform((sites, context) =>
  sites.map((site) => {
    if (site === '*') return site;
    const origin = originOf(site.toLowerCase());
    if (origin === null) context.addIssue('Expected origins such as https://example.org, or *');
    return origin ?? site;
  }),
);

/** Null for what is no origin. Apps have schemes of their own, which `URL.origin` does not know. */
function originOf(site: string): string | null {
  const [, withoutPort] = /^(.+[^:]):\*\/?$/.exec(site) ?? [];
  if (withoutPort !== undefined) {
    const origin = originOf(withoutPort);
    return origin === null || new URL(origin).port !== '' ? null : `${origin}:*`;
  }
  if (!URL.canParse(site)) return null;
  const { protocol, host, href } = new URL(site);
  const origin = `${protocol}//${host}`;
  return !host.includes('*') && [origin, `${origin}/`].includes(href) ? origin : null;
}

/** Pairs of name=id. */
export const aliases = list.transform((pairs, context): Record<string, string> => {
  const parts = pairs.map((pair) => pair.split('=').map((part) => part.trim()));
  if (parts.some((pair) => pair.length !== 2 || pair.includes(''))) context.addIssue('Expected name=id');
  return Object.fromEntries(parts);
});

/** The metadata of a setting whose value is never shown. */
export const secret = (description: string) => ({ description, secret: true });

export const onOff = z
  .string()
  .toLowerCase()
  .pipe(z.enum(['on', 'off', '1', '0', 'true', 'false', 'yes', 'no', 'y', 'n']))
  .transform((word) => isTruthy(word));

const anyHttpUrl = z.url({ protocol: /^https?$/, error: 'Expected an http or https URL' });
export const httpUrl = (fallback: string) => anyHttpUrl.default(fallback);
/**
 * Requests are forwarded with the headers of the client, so a login of the operator would not be sent. The paths of
 * requests begin with `/v1`, so a `/v1` at the end, as OpenAI's packages want it, is left out.
 */
export const upstreamUrl = (fallback: string) =>
  anyHttpUrl
    .refine((text) => !hasLogin(text), 'Expected a URL without a login, which would not be sent')
    .refine(
      (text) => !/[?#]/.test(text),
      'Expected a URL without a query or a fragment, which would not be sent',
    )
    .transform((text) => text.replace(/\/v1\/*$/, ''))
    .default(fallback);

function hasLogin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username !== '' || password !== '';
}

/** What is shown in place of a secret. */
export const MASK = '********';

/** A value that may be shown. A URL may hold a password, also one that cannot be read. */
export function withoutLogin(text: string): string {
  const at = text.lastIndexOf('@');
  if (!/:|\/\//.test(text.slice(0, at + 1))) return text;
  const [scheme = ''] = /^[^/:@]*:\/+/.exec(text) ?? [];
  return `${scheme}${MASK}${text.slice(at)}`;
}

/** Says what is wrong with each setting, so that an operator mends all of them at once. No secret is shown. */
export function refusedSettings(
  kinds: Readonly<Record<string, z.ZodType>>,
  given: Readonly<Record<string, string | undefined>>,
  { issues }: z.ZodError,
): ConfigError {
  const firsts = issues.filter(
    ({ path: [name] }, i) => i === issues.findIndex(({ path }) => path[0] === name),
  );
  const sentences = firsts.map((issue) => {
    const name = String(issue.path[0]);
    const shown = kinds[name]?.meta()?.secret === true ? MASK : withoutLogin(given[name] ?? '');
    const expected = issue.code === 'invalid_value' ? `Expected ${issue.values.join(', ')}` : issue.message;
    return `${name} cannot be "${shown}": ${expected}`;
  });
  return new ConfigError(sentences.join('; '));
}

/** The longest path of a Unix socket that every system takes. */
const MAX_SOCKET_BYTES = 103;

/** An address, also one in the brackets of a URL, or a Unix socket. A path alone is no address. */
export const listenHost = z
  .string()
  .min(1)
  .refine((host) => {
    const path = socketPathOf(host);
    if (path === undefined) return !host.includes('/');
    return path.startsWith('/') && Buffer.byteLength(path) <= MAX_SOCKET_BYTES;
  }, `Expected an address, or unix: and an absolute path of at most ${MAX_SOCKET_BYTES} bytes`)
  .transform((host) => host.replace(/^\[(.+)\]$/, '$1'));

/**
 * A path, in which a leading `~` becomes the home folder of this user, as in a shell: no shell reads the file of
 * `docker run --env-file` or of `EnvironmentFile=`. Null for what else a shell would replace, and where there is no home.
 */
export function fromHome(path: string): string | null {
  if (/^(~[^/]|\$)/.test(path)) return null;
  if (!path.startsWith('~')) return path;
  const home = homeFolder();
  return home === null ? null : join(home, path.slice(1));
}

export const NO_PATH = 'Expected a path; ~/ is the home folder of this user, and nothing else is replaced';
export const folder = z
  .string()
  .min(1)
  .transform((path, context) => {
    const found = fromHome(path);
    if (found === null) context.addIssue(NO_PATH);
    return found ?? path;
  });

/** Permissions of a file, as `chmod` takes them. */
export const fileMode = z.string().regex(/^0?[0-7]{3}$/, 'Expected three octal digits');

const MAX_PROXIES = 32;
/** The names that Express gives to the address ranges which RFC 1122, 3927, 1918 and 4193 reserve. */
const SUBNET_NAMES = ['loopback', 'linklocal', 'uniquelocal'];
const PROXIES = `Expected a number of proxies up to ${MAX_PROXIES}, or subnets such as 10.0.0.0/8 (or ${SUBNET_NAMES.join(', ')})`;

function isSubnet(text: string): boolean {
  const [, address = '', prefix = '1'] = /^([\d.]+|[\da-f:]+)(?:\/(\d{1,3}))?$/i.exec(text) ?? [];
  const most = isIP(address) === 4 ? 32 : 128;
  return SUBNET_NAMES.includes(text) || (isIP(address) > 0 && Number(prefix) >= 1 && Number(prefix) <= most);
}

/**
 * The number of reverse proxies in front, or their subnets. All addresses (`true` in Express, or a prefix of 0) are not
 * offered: a client could then claim any address as its own.
 */
export const trustedProxies = z.union(
  [
    z
      .string()
      .regex(/^\d+$/)
      .transform(Number)
      .refine((hops) => hops <= MAX_PROXIES),
    list.refine((subnets) => subnets.every(isSubnet), PROXIES),
  ],
  PROXIES,
);

/**
 * A sentence for each name that looks like a setting and is none.
 * @throws ConfigError for one that looks like a secret: a gateway that was meant to have a key must not start open
 */
export function unknownSettings(given: string[], known: string[]): string[] {
  const unknown = given.filter((name) => name.startsWith('SVC_') && !known.includes(name));
  const nearestTo = (name: string) => known.reduce((a, b) => (distance(name, b) < distance(name, a) ? b : a));
  const secret = unknown.find((name) => /KEY|TOKEN|SECRET|PASSWORD/.test(name));
  if (secret !== undefined)
    throw new ConfigError(`${secret} is not a setting of voxgate; the nearest one is ${nearestTo(secret)}`);
  return unknown.map(
    (name) => `${name} is not a setting of voxgate and has no effect; the nearest one is ${nearestTo(name)}`,
  );
}

/** Thrown for a setting whose value is outside its range; the message is one sentence that names the setting. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** What `EngineInfo.cpuLevel` can be on x86 and on 64-bit ARM, and `auto`. */
export const cpuLevel = z.enum([
  'auto',
  ...(['sse2', 'avx', 'avx2', 'avx2_vnni', 'avx512', 'avx512_vnni', 'avx512_bf16', 'amx'] as const),
  ...(['neon', 'neon_dotprod', 'neon_i8mm'] as const),
]);

/** Where weights are kept unless a setting says it. */
export function defaultModelDir(env: NodeJS.ProcessEnv): string {
  const cache = cacheFolder(env);
  if (cache === null)
    throw new ConfigError('SVC_MODEL_DIR must be set, because this user has no home folder');
  return join(cache, 'voxgate', 'models');
}
