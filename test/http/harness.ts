/** Starts a real gateway on a free port with a scripted engine, so that HTTP behavior is tested without weights. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import winston from 'winston';
import { type App, buildApp } from '../../src/app.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { createCrashes } from '../../src/crashes/crashes.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { missingEngine } from '../../src/engine/missing-engine.ts';
import type { Exchange } from '../../src/observability/exchange.ts';
import { until } from '../until.ts';
import { wav } from '../wav.ts';
import { type Script, scriptedEngine, scriptedStore } from './scripted-engine.ts';

/** Hardly any test of HTTP does without these. */
export { heard, type Script, untilAborted } from './scripted-engine.ts';
export { until };

export interface Gateway extends AsyncDisposable {
  base: string;
  /** The port of Wyoming; 0 unless the settings have one. */
  wyomingPort: number;
  app: App;
  /** Uploads that are on disk now. */
  uploads(): string[];
  uploadFolders(): string[];
  /** Number of requests that wait for weights now. */
  fetching(): number;
  /** Number of requests whose headers have arrived. */
  arrived(): number;
  /** Number of files that are being opened. */
  opening(): number;
  /** Number of jobs that have begun and not ended. */
  running(): number;
  /** Number of jobs that have begun. */
  begun(): number;
  /** Requests that are over, as the observer saw them. */
  exchanges: Exchange[];
  /** Ids of the models that were loaded, in order. */
  loads: string[];
  /** The operator's log, one line of JSON each. */
  logged: string[];
  config: Config;
}

export async function startGateway(script: Script = {}): Promise<Gateway> {
  const tmp = mkdtempSync(join(tmpdir(), 'voxgate-http-test-'));
  const aside = mkdtempSync(join(tmpdir(), 'voxgate-http-test-logs-'));
  const removeFolders = () => {
    for (const folder of [tmp, aside]) rmSync(folder, { recursive: true, force: true });
  };
  try {
    return await startIn(tmp, aside, removeFolders, script);
  } catch (error) {
    removeFolders();
    throw error;
  }
}

async function startIn(
  tmp: string,
  aside: string,
  removeFolders: () => void,
  script: Script,
): Promise<Gateway> {
  const { config } = readConfig({
    SVC_PORT: '0',
    SVC_TMP_DIR: tmp,
    SVC_OBS_LOG_DIR: join(aside, 'logs'),
    SVC_OBS_PAYLOAD_DIR: join(aside, 'payloads'),
    SVC_CRASH_DIR: join(aside, 'crashes'),
    ...script.env,
  });
  let running = 0;
  let begun = 0;
  let opening = 0;
  const count = (change: number) => {
    running += change;
    if (change > 0) begun += 1;
  };
  const loads: string[] = [];
  const engine =
    script.engine === null
      ? missingEngine()
      : scriptedEngine(script, {
          job: count,
          load: (name) => loads.push(name),
          opening: (change) => (opening += change),
        });
  const logged: string[] = [];
  const write = (line: Buffer, _encoding: string, done: () => void) => {
    logged.push(line.toString());
    done();
  };
  const transport = new winston.transports.Stream({ stream: new Writable({ write }) });
  const log = winston.createLogger({
    level: config.logLevel,
    format: winston.format.json(),
    transports: [transport],
  });
  let fetching = 0;
  const uploadFolders = () => readdirSync(tmp).map((dir) => join(tmp, dir));
  const exchanges: Exchange[] = [];
  const onExchange = (exchange: Exchange) => void exchanges.push(exchange);
  const app = buildApp(config, {
    log,
    engine,
    device: chooseDevice(config.device, engine.info.devices),
    store: script.store ?? scriptedStore(script, (change) => (fetching += change)),
    onExchange,
    budgets: script.budgets,
    crashes: createCrashes(config.crashDir),
  });
  let arrived = 0;
  app.server.on('request', () => {
    arrived += 1;
  });
  script.beforeListening?.(app.server);
  await new Promise<void>((resolve) => app.server.listen(0, '127.0.0.1', resolve));
  const { port } = app.server.address() as AddressInfo;
  if (config.wyomingPort !== undefined)
    await new Promise<void>((resolve) => app.wyoming.listen(config.wyomingPort, '127.0.0.1', resolve));
  return {
    base: `http://127.0.0.1:${port}`,
    wyomingPort: (app.wyoming.address() as AddressInfo | null)?.port ?? 0,
    app,
    uploads: () => uploadFolders().flatMap((dir) => readdirSync(dir)),
    uploadFolders,
    fetching: () => fetching,
    arrived: () => arrived,
    opening: () => opening,
    running: () => running,
    begun: () => begun,
    exchanges,
    loads,
    logged,
    config,
    async [Symbol.asyncDispose]() {
      await app.close();
      removeFolders();
    },
  };
}

/** Makes a wav of a 440 Hz tone, which is loud enough to count as speech here. */
export function toneWav(seconds: number, amplitude = 0.5): Buffer {
  const count = Math.round(seconds * 16_000);
  return wav(
    Float32Array.from({ length: count }, (_, i) => amplitude * Math.sin((2 * Math.PI * 440 * i) / 16_000)),
  );
}

export function form(
  file: Uint8Array | null,
  fields: Record<string, string> = {},
  name = 'speech.wav',
): FormData {
  const data = new FormData();
  for (const [key, value] of Object.entries(fields)) data.append(key, value);
  if (file !== null) data.append('file', new Blob([new Uint8Array(file)]), name);
  return data;
}

export function post(gateway: Gateway, body: FormData, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body, ...init });
}

/** Sends a transcription whose id is that of the API's examples, and waits until it is captured. */
export async function captureOne(gateway: Gateway): Promise<void> {
  const headers = { 'X-Request-ID': 'my-request' };
  const { status } = await post(gateway, form(toneWav(1)), { headers });
  if (status !== 200) throw new Error(`the transcription to capture was answered with ${status}`);
  const capture = `${gateway.base}/admin/captures/my-request`;
  await until('the request is captured', async () => (await fetch(capture)).status === 200);
}

export const json = (response: Response): Promise<any> => response.json();

/** The requests that wait for the slot, in order. */
export const waiting = async (gateway: Gateway) =>
  (await json(await fetch(`${gateway.base}/admin/api/metrics`))).slot.waiting;
export const untilWaiting = (gateway: Gateway, count: number) =>
  until(`${count} wait`, async () => (await waiting(gateway)).length === count);
