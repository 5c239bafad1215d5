/**
 * Every route in every spelling of its path, with every method and every kind of access. Without a right key nothing
 * behind a key is reached; with it, another spelling is the same route or none.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import pMap from 'p-map';
import { adminPaths } from '../../src/admin/openapi.ts';
import { describeApi } from '../../src/http/openapi/docs.ts';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { livePaths } from '../../src/live/realtime/openapi.ts';
import { type HostileUpstream, startHostileUpstream } from '../faults/hostile-upstream.ts';
import { SERVED } from '../route-rows.ts';
import { type Gateway, startGateway } from './harness.ts';
import { rawClient, statusesIn } from './raw-client.ts';

const KEY = 'the-right-key';
const METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT'],
  ...['PROPFIND', 'MKCOL', 'PURGE', 'LINK', 'SEARCH', 'get', 'Post', 'FOO'],
];

const encoded = (text: string) =>
  text.replace(/[a-z]/gi, (letter) => `%${letter.charCodeAt(0).toString(16)}`);
const inLast = (path: string, change: (slash: string) => string) => {
  const end = path.lastIndexOf('/');
  return path.slice(0, end) + change('/') + path.slice(end + 1);
};

/** Other spellings of a path that some server takes for the same one. */
function spellings(path: string): string[] {
  const [, first = '', rest = ''] = /^\/(\w+)(.*)$/.exec(path) ?? [];
  return [
    ...[path.toUpperCase(), `/${first.toUpperCase()}${rest}`, `/${first}${rest.toUpperCase()}`],
    ...[encoded(path), `/%${first.charCodeAt(0).toString(16)}${first.slice(1)}${rest}`],
    ...[`/${first}${encoded(rest)}`, encoded(path).toUpperCase(), encoded(path).replaceAll('%', '%25')],
    ...[
      `/${path}`,
      `//${path}`,
      inLast(path, () => '//'),
      `${path}/`,
      `${path}//`,
      `${path}/.`,
      `${path}/..`,
    ],
    ...[`/.${path}`, `/x/..${path}`, `/health/..${path}`, `/assets/../${path}`, `/admin/..${path}`],
    ...[`/%2e${path}`, `/x/%2e%2e${path}`, `/x/.%2E${path}`, `/x/..;${path}`, `/x%2f..${path}`],
    ...[inLast(path, () => '/./'), inLast(path, () => '/x/../'), inLast(path, () => '/;/')],
    ...[`${path};`, `${path};x=1`, `/${first};x${rest}`, `/;${path}`, `${path}.`, `${path}.json`],
    ...['%2f', '%2F', '%5c', '\\', '%c0%af', '%ef%bc%8f', '%252f'].map((slash) => inLast(path, () => slash)),
    ...[`%2f${path.slice(1)}`, `/%2f${path.slice(1)}`, `\\${path.slice(1)}`, path.slice(1)],
    ...[
      `${path}%00`,
      `${path}\0`,
      `${path}%0a`,
      `${path}%0d%0aX:%20x`,
      `${path}%20`,
      `${path}\t`,
      `${path}%`,
    ],
    ...[`${path}#`, `${path}#x`, `${path}%23`, `/health#${path}`, `/health?${path}`, `/health;${path}`],
    ...[`${path}?`, `${path}?x=/../`, `${path}??`, `${path}%3f`, `${path}&x`],
    ...[`http://localhost${path}`, `HTTP://localhost${path}`, `http://elsewhere${path}`, `http:${path}`],
    ...[`https://localhost@elsewhere${path}`, `localhost${path}`, `*${path}`, `http://localhost/..${path}`],
  ];
}

const document = await describeApi({ version: '1', adminPaths, livePaths });
const operations = SERVED.map(({ method, template }) => {
  const described = document.paths?.[template]?.[method as 'get'];
  const path = template.replace(/\{\w+\}/g, 'x');
  return { method: method.toUpperCase(), path, isOpen: described?.security?.length === 0 };
});
const paths = new Set(operations.map(({ path }) => path));
const openPaths = operations.filter(({ isOpen }) => isOpen).map(({ path }) => path);
/** Whether a target is a plain spelling of a path that needs no key. */
const isOpen = (target: string) =>
  openPaths.includes(target.replace(/^https?:\/\/localhost/i, '').replace(/\/?(\?.*)?$/, ''));

/** A page with a slash behind it leads to the page. */
const leadsOn = (target: string, status: number) => status === 302 && /^[^?]*\/(\?|$)/.test(target);

let upstream: HostileUpstream;
let gateway: Gateway;
let session = '';
let taken = 0;
before(async () => {
  upstream = await startHostileUpstream();
  gateway = await startGateway({
    env: { SVC_API_KEY: KEY, SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url },
    budgets: { access: { wrongKeys: 1_000_000 } },
  });
  const { slot } = gateway.app;
  const take = slot.take.bind(slot);
  slot.take = (...args) => {
    taken += 1;
    return take(...args);
  };
  const signedIn = await fetch(`${gateway.base}/admin/session`, {
    ...{
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key: KEY }),
    },
  });
  session = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
});
after(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await upstream?.[Symbol.asyncDispose]();
});

interface Ask {
  method: string;
  target: string;
  access: string;
  /** The same operation in its own spelling. */
  own?: Ask;
}

interface Answer {
  status: number;
  body: string;
  isBusy: boolean;
  /** The target that the upstream got, when it was asked. */
  forwarded: string | undefined;
}

let lastId = 0;
async function ask({ method, target, access }: Ask): Promise<Answer> {
  const id = `asked-${lastId++}`;
  const fields = ['Host: localhost', 'Connection: close', 'Content-Length: 0', `X-Request-ID: ${id}`];
  const head = [`${method} ${target} HTTP/1.1`, ...fields, ...(access ? [access] : []), '', ''];
  using client = rawClient(gateway.base, head.join('\r\n'));
  client.socket.setTimeout(10_000, () => client.socket.destroy());
  await once(client.socket, 'close');
  const [status = 0] = statusesIn(client.said());
  const visit = upstream.heads.find((seen) => seen.includes(`x-request-id: ${id}\r\n`));
  const isBusy = client.said().includes('\r\nRetry-After: 5\r\n');
  return { status, isBusy, body: client.said().split('\r\n\r\n')[1] ?? '', forwarded: visit?.split(' ')[1] };
}

/** Asks for everything, and fails with all that is not as `check` says. Every refusal has the envelope. */
async function askAll(asks: Ask[], check: (asked: Ask, answer: Answer) => boolean): Promise<void> {
  const wrong: string[] = [];
  const one = async (asked: Ask) => {
    const answer = await ask(asked);
    const refused = answer.status >= 400 && asked.method !== 'HEAD' && answer.forwarded === undefined;
    const isRight =
      check(asked, answer) && (!refused || errorEnvelopeSchema.safeParse(parsed(answer.body)).success);
    if (!isRight) wrong.push(`${asked.method} ${asked.target} ${asked.access}: ${JSON.stringify(answer)}`);
  };
  await pMap(asks, one, { concurrency: 16 });
  assert.deepEqual(wrong, []);
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

const everyMethod = (access: string): Ask[] =>
  [...paths].flatMap((path) => METHODS.map((method) => ({ method, target: path, access })));
const everySpelling = (access: string): Ask[] =>
  operations.flatMap(({ method, path }) =>
    spellings(path).map((target) => ({ method, target, access, own: { method, target: path, access } })),
  );

const bearer = (key: string) => `Authorization: Bearer ${key}`;
const REFUSED = [400, 401, 403, 404, 405];
const NO_ROUTE = [400, 404, 405];

test('without a right key nothing behind a key is reached, however its path is spelled', async (t) => {
  const cookie = `Cookie: ${session}`;
  const asks = [
    ...[...everyMethod(''), ...everySpelling(''), ...everyMethod(bearer('a-wrong-key'))],
    ...[...everyMethod(cookie), ...everySpelling(cookie)].filter(
      ({ target }) => !/admin/.test(decoded(target)),
    ),
  ];
  t.diagnostic(`${asks.length} requests for ${paths.size} paths`);
  assert(paths.size > 30 && asks.length > 4000);
  await askAll(
    asks,
    ({ target }, { status }) =>
      REFUSED.includes(status) || (isOpen(target) && (status < 300 || leadsOn(target, status))),
  );
  assert.equal(upstream.heads.length, 0);
  assert.deepEqual([taken, gateway.begun(), gateway.loads], [0, 0, []]);
});

test('with the right key another spelling is the same route or none, and upstreams get the bytes that matched', async (t) => {
  const asks = [...everyMethod(bearer(KEY)), ...everySpelling(bearer(KEY))];
  t.diagnostic(`${asks.length} requests for ${paths.size} paths`);
  let forwards = 0;
  const statuses = new Map<string, number>();
  for (const { method, path } of operations) {
    const { status } = await ask({ method, target: path, access: bearer(KEY) });
    statuses.set(`${method} ${path}`, status);
  }
  await askAll(asks, ({ target, own }, { status, isBusy, forwarded }) => {
    if (forwarded !== undefined) {
      forwards += 1;
      const sent = target.replace(/^https?:\/\/localhost/i, '');
      return (
        forwarded === sent &&
        /^\/v1\/(audio\/|(chat\/completions|completions|embeddings)\/?(\?|$)|responses[/?]|responses$)/.test(
          sent,
        )
      );
    }
    if (own === undefined) return status < 500 || isBusy;
    const isSame = status === statuses.get(`${own.method} ${own.target}`);
    const isOther = NO_ROUTE.includes(status) || leadsOn(target, status);
    return isSame || isOther || (isOpen(target) && status < 300) || isBusy;
  });
  assert(forwards > 50);
});

function decoded(target: string): string {
  try {
    return decodeURIComponent(target).toLowerCase();
  } catch {
    return target.toLowerCase();
  }
}
