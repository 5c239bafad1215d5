/**
 * Pages of other sites attack the gateway from a real browser: from another site, from another port of the same host,
 * and under a name that is made to point to the gateway. They try every way in which a page can make requests, on every
 * route, also where the reader is signed in to the dashboard.
 *
 * Most of the time is that of frames, of which each is a page. So the check tries each route from each place, either
 * signed in or not, and test/deep/cross-site.test.ts tries all.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';
import { type Gateway, startGateway, until } from '../http/harness.ts';
import { listening } from '../local-server.ts';
import { SERVED } from '../route-rows.ts';
import { browserOfFile } from './browser.ts';

const KEY = 'k1';
const foreign = await listening(
  createServer((_req, res) => {
    res.setHeader('Content-Type', 'text/html').end('<!doctype html><title>elsewhere</title>');
  }),
);
after(() => foreign[Symbol.asyncDispose]());
export const browser = await browserOfFile(
  '--host-resolver-rules=MAP *.example 127.0.0.1',
  // The gateway must hold without the protection that newer browsers have of their own.
  '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests,PrivateNetworkAccessChecks',
);

const operations = SERVED.map(({ method, template }) => ({
  method,
  path: template.replace(/\{\w+\}/g, 'x'),
}));
const readingPaths = operations.filter(({ method }) => method === 'get').map(({ path }) => path);
const changingOperations = operations.filter(({ method }) => method !== 'get');

/** Does the work for each item in the page, some at a time, because most of it is waiting for an answer. */
const FOR_EACH = `async (items, work) => {
  const waiting = [...items];
  const lane = async () => { for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item); };
  await Promise.all([lane(), lane(), lane(), lane()]);
}`;

/** Runs in the page: tries to read each path, and returns what it has come to know. */
const READ = `async ([base, paths]) => {
  const forEach = ${FOR_EACH};
  const refused = (text) => text.startsWith('{"error":{"kind":"forbidden"') || text.startsWith('{"error":{"kind":"unauthorized"');
  const learned = [];
  const settled = (element, good) => new Promise((resolve) => {
    element.onload = () => { learned.push(good()); resolve(); };
    element.onerror = resolve;
    setTimeout(resolve, 5000);
    document.body.append(element);
  });
  const make = (tag, fields) => Object.assign(document.createElement(tag), fields);
  await forEach(paths, async (path) => {
    const url = base + path;
    for (const options of [{}, { mode: 'no-cors' }, { credentials: 'include' }, { mode: 'no-cors', credentials: 'include' }, { headers: { Authorization: 'Bearer x' } }]) {
      try {
        const text = await (await fetch(url, options)).text();
        if (text !== '' && !refused(text)) learned.push('fetch ' + JSON.stringify(options) + ' ' + path);
      } catch {}
    }
    await settled(make('img', { src: url }), () => 'image ' + path);
    await settled(make('script', { src: url }), () => 'script ' + path);
    const frame = make('iframe', { src: url });
    await new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 5000); document.body.append(frame); });
    try { const text = frame.contentDocument?.body.textContent; if (text && !refused(text)) learned.push('frame ' + path); } catch {}
    frame.remove();
    await new Promise((resolve) => {
      const events = new EventSource(url, { withCredentials: true });
      events.onopen = events.onmessage = () => { learned.push('events ' + path); events.close(); resolve(); };
      events.onerror = () => { events.close(); resolve(); };
    });
  });
  await new Promise((resolve) => {
    const socket = new WebSocket(base.replace('http', 'ws') + paths[0]);
    socket.onopen = () => { learned.push('socket'); resolve(); };
    socket.onerror = resolve;
  });
  const opened = window.open(base + '/admin/api/metrics');
  await new Promise((resolve) => setTimeout(resolve, 300));
  try { const text = opened?.document.body.textContent; if (text && !refused(text)) learned.push('window'); } catch {}
  opened?.close();
  return learned;
}`;

/** Runs in the page: tries to make each request that changes something. */
const CHANGE = `async ([base, operations]) => {
  const forEach = ${FOR_EACH};
  const refused = (text) => text.startsWith('{"error":{"kind":"forbidden"') || text.startsWith('{"error":{"kind":"unauthorized"');
  const learned = [];
  await forEach(operations, async ({ method, path }) => {
    const url = base + path;
    for (const options of [{ mode: 'no-cors' }, {}, { headers: { 'Content-Type': 'application/json' } }, { headers: { 'HX-Request': 'true' } }]) {
      const body = options.headers?.['Content-Type'] ? '{"key":"payload","value":"on"}' : new URLSearchParams({ key: 'payload', value: 'on' });
      try {
        const text = await (await fetch(url, { method: method.toUpperCase(), credentials: 'include', body, ...options })).text();
        if (text !== '' && !refused(text)) learned.push('fetch ' + method + path);
      } catch {}
    }
    if (method !== 'post') return;
    navigator.sendBeacon(url, new URLSearchParams({ key: 'payload', value: 'on' }));
    for (const enctype of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) {
      const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), { name: 'f' + Math.random() }));
      const form = document.body.appendChild(Object.assign(document.createElement('form'), { action: url, method: 'post', enctype, target: frame.name }));
      for (const [name, value] of [['key', 'payload'], ['value', 'on']])
        form.append(Object.assign(document.createElement('input'), { name, value }));
      const loaded = new Promise((resolve) => { frame.onload = resolve; setTimeout(resolve, 5000); });
      form.submit();
      await loaded;
      try { const text = frame.contentDocument?.body.textContent; if (text && !refused(text)) learned.push('form ' + path); } catch {}
      frame.remove();
    }
  });
  return learned;
}`;

/** Where the attacking page is, as an origin. @param rebound the document comes from elsewhere, all else from the gateway */
const PLACES = [
  ['another site', () => `http://evil.example:${foreign.port}`, false],
  ['another port of the same host', () => `http://127.0.0.1:${foreign.port}`, false],
  [
    'a name that points here',
    (gateway: Gateway) => `http://rebound.example:${new URL(gateway.base).port}`,
    true,
  ],
] as const;

/** Tells whether the process lives, to everyone (docs/api.md). */
const OPEN = ['/health', '/ready'];

/** The gateway itself asks the upstreams what they have when /v1/models is read. */
const PROBE = /^GET \/(health|v1\/models|api\/tags) /;

interface Scene {
  place: (typeof PLACES)[number];
  /** The key of the gateway, with which the reader is signed in; empty for a gateway without keys. */
  key: string;
  /** One of as many routes is tried, the first of them at this index. */
  oneOf: number;
  first: number;
}

const sampleOf = <T>(all: readonly T[], { oneOf, first }: Scene): T[] =>
  all.filter((_each, i) => i % oneOf === first % oneOf);

async function attack(t: TestContext, scene: Scene): Promise<void> {
  const { key } = scene;
  const [, originOf, rebound] = scene.place;
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_API_KEY: key, SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url },
  });
  const context = await browser.newContext();
  const page = await context.newPage();
  if (key) await signIn(page, gateway);
  const origin = originOf(gateway);
  if (rebound)
    await page.route(`${origin}/`, (route) => route.fulfill({ contentType: 'text/html', body: '<body>' }));
  await page.goto(`${origin}/`);
  // The dashboard may have asked for its figures just before it was left.
  await (await fetch(`${gateway.base}/health`)).text();
  await sleep(100);
  const seen = gateway.exchanges.length;
  const target = rebound ? origin : gateway.base;
  const run = (script: string, what: unknown) =>
    page.evaluate<string[]>(`(${script})(${JSON.stringify([target, what])})`);
  const learned = [
    ...(await run(READ, sampleOf(readingPaths, scene))),
    ...(await run(CHANGE, sampleOf(changingOperations, scene))),
  ];
  await context.close();
  await until('nothing is under way', () => gateway.app.slot.status().holder === null);
  const attacks = gateway.exchanges.slice(seen);
  t.diagnostic(`${attacks.length} requests reached the gateway`);
  assert(attacks.length > 200 / scene.oneOf);
  assert.deepEqual(
    learned.filter((what) => !(rebound && OPEN.some((path) => what.endsWith(path)))),
    [],
  );
  const served = attacks.filter(
    ({ method, path = '', status }) =>
      status < 400 &&
      !OPEN.includes(path) &&
      method !== 'OPTIONS' &&
      (rebound || method !== 'GET' || path.startsWith('/v1/audio/')),
  );
  assert.deepEqual(served, []);
  assert.deepEqual(
    upstream.heads.filter((head) => !PROBE.test(head)),
    [],
    'no upstream is asked',
  );
  assert.deepEqual([gateway.begun(), gateway.loads], [0, []]);
}

/** @param oneOf of as many routes one is tried in each scene; of two, each from every place, signed in or not */
export function tryCrossSite(oneOf: 1 | 2): void {
  for (const [p, place] of PLACES.entries())
    for (const [k, key] of ['', KEY].entries())
      test(
        `a page from ${place[0]} learns and changes nothing${key && ' where the reader is signed in'}`,
        {
          timeout: 120_000,
        },
        (t) => attack(t, { place, key, oneOf, first: p + k }),
      );
}

async function signIn(page: Page, gateway: Gateway): Promise<void> {
  await page.goto(`${gateway.base}/admin`);
  await page.locator('dialog[open] input').fill(KEY);
  await page.locator('dialog[open] input').press('Enter');
  await page.getByText('Free', { exact: true }).waitFor();
}
