/**
 * Runs the admin room in an app of its own, with real metrics, toggles and slot, and with scripted models and
 * captures.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express, { type RequestHandler } from 'express';
import winston from 'winston';
import type { AdminDeps, LiveNow, Trouble, UploadNow } from '../../src/admin/deps.ts';
import type { ModelStatus } from '../../src/admin/model-actions.ts';
import { adminRoutes } from '../../src/admin/routes.ts';
import type { StoredCapture } from '../../src/capture/capture-folder.ts';
import { readConfig } from '../../src/config/config.ts';
import { shownGroups } from '../../src/config/shown-settings.ts';
import type { CrashRecord } from '../../src/crashes/crashes.ts';
import type { OnCpu } from '../../src/engine/gpu-fallback.ts';
import { createSlot, type Slot } from '../../src/engine/slot.ts';
import { createWaitingLine, type WaitingLine } from '../../src/engine/waiting-line.ts';
import { GatewayError } from '../../src/errors.ts';
import { errorHandler } from '../../src/http/error-handler.ts';
import { mountPages } from '../../src/http/pages.ts';
import { requestId } from '../../src/http/server/request-id.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import type { LiveStatus } from '../../src/limits/live-places.ts';
import type { Exchange } from '../../src/observability/exchange.ts';
import type { LogLine } from '../../src/observability/log-tail.ts';
import { createMetrics, type Metrics } from '../../src/observability/metrics.ts';
import type { Toggles } from '../../src/observability/toggles.ts';
import type { UpstreamHealth } from '../../src/proxy/inventory.ts';
import { toneWav } from './harness.ts';

export interface Admin extends AsyncDisposable {
  base: string;
  metrics: Metrics;
  toggles: Toggles;
  slot: Slot;
  line: WaitingLine;
  models: ModelStatus[];
  /** Whether requests download weights. */
  downloads: boolean;
  /** The commands of the pages in order, such as `pull cjk`. */
  asked: string[];
  crashes: CrashRecord[];
  upstreams: UpstreamHealth[];
  /** What is wrong with the machine. */
  troubles: Trouble[];
  live: LiveNow[];
  uploads: UploadNow[];
  logLines: LogLine[];
  /** Why capture switched itself off. */
  captureFailure: { at: Date; why: string } | null;
  onCpu: OnCpu[];
  /** Ids that have a capture. */
  captured: Set<string>;
  setClock(sec: number): void;
  /** The server goes away as if the gateway were stopped, and comes back on the same port. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
}

/** A session of the protocol Realtime that waits for speech. */
export const live = (more: Partial<LiveStatus> = {}): LiveNow => ({
  ...{ protocol: 'realtime', network: '10.0.0.7', idleMs: () => 3200 },
  status: () => ({ kind: 'conversation', state: 'waiting', lastError: null, lastAnswer: null, ...more }),
});
export const upload = (network: string, isWhole = false): UploadNow => ({
  network,
  behindMs: () => (isWhole ? null : 0),
});

/** The settings that the dashboard shows. */
const SETTINGS = {
  SVC_PORT: '9000',
  SVC_API_KEY: 'hush',
  SVC_OBS_PAYLOAD_DIR: '/<b>captures</b>',
  HOME: '/home/me',
};

export async function startAdmin(before: RequestHandler[] = []): Promise<Admin> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-admin-test-'));
  const startedAt = performance.now();
  let offsetMs = 0;
  const metrics = createMetrics({ windowSec: 3600, now: () => performance.now() - startedAt + offsetMs });
  const toggles = { metrics: true, access_log: true, payload: false };
  const slot = createSlot();
  const line = createWaitingLine(slot, BUDGETS.waiting);
  const models = someModels();
  const asked: string[] = [];
  const crashes: CrashRecord[] = [];
  const captured = new Set<string>();
  const upstreams = someUpstreams();
  const troubles: Trouble[] = [];
  const sessions: LiveNow[] = [];
  const uploads: UploadNow[] = [];
  const logLines: LogLine[] = [];
  const log = winston.createLogger({ silent: true });
  const deps: AdminDeps = {
    shutdown: new AbortController().signal,
    ...{ version: '0.1.0', cpuLevel: 'avx2', log, metrics, toggles, crashes: { list: () => crashes } },
    slot: { status: () => ({ ...slot.status(), waiting: line.waiting() }), stopHolder: slot.stopHolder },
    models: scriptedModels(models, asked, () => admin.downloads),
    audioProblem: async () => null,
    onCpu: () => admin.onCpu,
    upstreams: { health: async () => upstreams },
    live: () => sessions,
    uploads: () => uploads,
    logLines: () => logLines,
    watch: { troubles: () => troubles },
    settings: shownGroups(readConfig(SETTINGS).config),
    captures: { ...scriptedCaptures(dir, captured), failure: () => admin.captureFailure },
  };
  const app = express();
  app.disable('etag');
  app.use(
    requestId(() => false),
    notes,
    ...before,
    adminRoutes(deps),
  );
  app.get('/playground', (_req, res) => void res.send('elsewhere'));
  mountPages(app);
  app.use(errorHandler(log));

  let server: Server;
  const listen = async (port: number) => {
    server = createServer(app);
    server.on('checkContinue', app);
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  const close = async () => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeAllConnections();
    await closed;
  };
  const port = await listen(0);
  const admin: Admin = {
    base: `http://127.0.0.1:${port}`,
    ...{
      metrics,
      toggles,
      slot,
      line,
      models,
      asked,
      captured,
      crashes,
      upstreams,
      troubles,
      live: sessions,
      uploads,
      logLines,
    },
    captureFailure: null,
    downloads: true,
    onCpu: [],
    setClock(sec) {
      offsetMs = sec * 1000 - (performance.now() - startedAt);
    },
    goAway: close,
    comeBack: async () => void (await listen(port)),
    async [Symbol.asyncDispose]() {
      if (server.listening) await close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return admin;
}

/** The admin room needs the notes, but no observer reads them here. */
const notes: RequestHandler = (_req, res, next) => {
  res.locals.notes = {};
  next();
};

export function model(id: string, more: Partial<ModelStatus> = {}): ModelStatus {
  const family = id.split('-')[0] ?? id;
  const off = { installed: false, bytes: 1_624_555_275, state: 'absent', leases: 0, memoryBytes: 0 } as const;
  return {
    ...{ id, family },
    ...off,
    idleForMs: null,
    progress: null,
    failure: null,
    failedAt: null,
    ...more,
  };
}

function someModels(): ModelStatus[] {
  return [
    model('multilingual-tiny', { installed: true, bytes: 43_537_433 }),
    model('multilingual-base', { installed: true, bytes: 81_768_585, state: 'resident', idleForMs: 12_000 }),
    model('multilingual-small', { installed: true, bytes: 264_464_607, state: 'resident', leases: 1 }),
    model('multilingual-large-v3-turbo', { bytes: 874_188_075 }),
    model('european', { bytes: 714_000_000 }),
    model('cjk', { bytes: 262_000_000, failure: 'The download of cjk failed: no space left on the disk' }),
  ];
}

function someUpstreams(): UpstreamHealth[] {
  const since = new Date(Date.now() - 65_000);
  const problem = { kind: 'refused', says: 'refuses the connection' } as const;
  return [
    { category: 'tts', problem, isAbsent: true, since },
    { category: 'llm', problem: null, isAbsent: false, since },
  ];
}

function scriptedModels(
  models: ModelStatus[],
  asked: string[],
  downloads: () => boolean,
): AdminDeps['models'] {
  const find = (id: string) => {
    const found = models.find((one) => one.id === id);
    if (found === undefined) throw new GatewayError('model_not_found', { model: id }, { param: 'id' });
    return found;
  };
  const unload = (one: ModelStatus) => {
    const was = one.state === 'resident';
    Object.assign(one, { state: 'absent', idleForMs: null, leases: 0 });
    return was;
  };
  return {
    get downloads() {
      return downloads();
    },
    list: () => models,
    find: (name) => find(name).id,
    pull(id) {
      asked.push(`pull ${id}`);
      const progress = {
        id,
        phase: 'downloading',
        what: `${id}.bin`,
        doneBytes: 0,
        totalBytes: 262_000_000,
      } as const;
      Object.assign(find(id), { progress, failure: null });
    },
    load(id) {
      asked.push(`load ${id}`);
      find(id).state = 'loading';
    },
    unload(id) {
      asked.push(`unload ${id}`);
      return unload(find(id));
    },
    remove(id) {
      asked.push(`remove ${id}`);
      unload(find(id));
      find(id).installed = false;
    },
    reset() {
      asked.push('reset');
      return { evicted: models.map(unload).filter(Boolean).length, remaining: 0 };
    },
  };
}

/** A captured upload of a sound, whose client calls it a page, and which was answered with speech. */
function formCapture(path: string): StoredCapture {
  const head = (rest: string) => `--b\r\nContent-Disposition: form-data; name="${rest}\r\n\r\n`;
  const wav = toneWav(1);
  const request = Buffer.concat([
    Buffer.from(`${head('language"')}<b>de</b>\r\n`),
    Buffer.from(head('file"; filename="a<i>.html"\r\nContent-Type: text/html')),
    wav,
    Buffer.from('\r\n--b--\r\n'),
  ]);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'req.bin'), request);
  writeFileSync(join(path, 'resp.bin'), wav);
  const meta = { request_headers: { 'content-type': 'multipart/form-data; boundary=b' } };
  return { path, meta, requestBytes: request.length, responseBytes: wav.length };
}

function scriptedCaptures(dir: string, captured: Set<string>): Omit<AdminDeps['captures'], 'failure'> {
  return {
    dir: '/var/lib/voxgate/payloads',
    async clear() {
      const count = captured.size;
      captured.clear();
      return count;
    },
    usage: async () => ({ bytes: captured.size * 2_500_000, captures: captured.size }),
    async find(id) {
      if (!captured.has(id)) return null;
      if (id.startsWith('form')) return formCapture(join(dir, '.kept', id));
      const path = join(dir, '.kept', id);
      mkdirSync(path, { recursive: true });
      writeFileSync(join(path, 'req.bin'), '<script>alert(1)</script>');
      writeFileSync(join(path, 'resp.bin'), '{"text":"Hello."}');
      const meta = { method: 'POST', url: '/v1/audio/transcriptions', status: 200, model: '<b>bold</b>' };
      return { path, meta, requestBytes: 25, responseBytes: 17 };
    },
    replay: async ({ path }) => ({
      status: { captured: 200, now: 200 },
      same: false,
      latencyMs: { captured: 812, now: 640 },
      summary: `<i>The answers differ</i> from byte 9 on: ${path.length > 0}`,
    }),
  };
}

export function exchange(more: Partial<Exchange> = {}): Exchange {
  return {
    requestId: 'aaaabbbbccccdddd',
    at: new Date(),
    ...{ method: 'POST', path: '/v1/audio/transcriptions', category: 'asr', model: 'multilingual-base' },
    ...{ route: 'requested', provider: 'voxgate', status: 200, class: '2xx', latencyMs: 812.4 },
    ...{ slotWaitMs: 3.2, clientIp: '10.0.0.7', bytesIn: 1000, bytesOut: 200, audioSec: 11, rtf: 0.07 },
    ...more,
  };
}

/** Records an hour of traffic that looks real and is the same at every call. */
export function liveUp(admin: Admin): void {
  let seed = 11;
  const random = () => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const hex = () =>
    Math.floor(random() * 0xffffffff)
      .toString(16)
      .padStart(8, '0');
  const span = 3600;
  for (let sec = 0; sec < span; sec++) {
    admin.setClock(sec);
    const busyness =
      Math.max(0, 0.09 + 0.1 * Math.sin(sec / 260)) + (sec > 3400 ? 0.3 + 0.25 * Math.sin(sec / 14) : 0);
    for (let n = 0; n < 3; n++) {
      if (random() > busyness) continue;
      const latencyMs =
        350 + 700 * random() + (random() > 0.93 ? 1800 * random() : 0) + 250 * Math.sin(sec / 400);
      const common = { requestId: hex() + hex(), at: new Date(Date.now() - (span - sec) * 1000), latencyMs };
      const roll = random();
      const kind = roll < 0.6 ? ASR : roll < 0.8 ? TTS : LLM;
      const fate = random();
      const more = fate < 0.84 ? {} : fate < 0.88 ? WRONG : fate < 0.91 ? BROKEN : fate < 0.97 ? BUSY : LEFT;
      const rtf = kind === ASR ? 0.05 + 0.05 * random() : 0.8 + 0.2 * random();
      admin.metrics.record(exchange({ ...common, rtf, audioSec: 4 + 20 * random(), ...kind, ...more }));
    }
  }
  admin.setClock(span);
}

const ASR: Partial<Exchange> = { route: 'auto:no-hint', model: 'multilingual-small' };
const TTS: Partial<Exchange> = { category: 'tts', model: 'tts', route: undefined, provider: 'tts' };
const LLM: Partial<Exchange> = {
  ...{ category: 'llm', model: 'qwen2.5-0.5b-instruct', route: undefined, provider: 'llm' },
  ...{ audioSec: undefined, rtf: undefined },
};
const NOTHING = { audioSec: undefined, rtf: undefined, slotWaitMs: undefined };
const WRONG: Partial<Exchange> = {
  ...{ status: 400, class: '4xx', latencyMs: 14, ...NOTHING },
  ...{ errorCode: 'invalid_value', errorMessage: 'temperature must not be "warm". Expected 0 to 1' },
};
const BROKEN: Partial<Exchange> = {
  ...{ status: 502, class: '5xx', rtf: undefined, errorCode: 'upstream_timeout' },
  errorMessage: 'The chat daemon did not answer in time: it sent nothing for 60 s',
};
const BUSY: Partial<Exchange> = { status: 503, class: '503-busy', latencyMs: 1.4, ...NOTHING };
const LEFT: Partial<Exchange> = { status: 499, class: 'client-disconnect', rtf: undefined };
