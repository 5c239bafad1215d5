/** Starts a real gateway on a free port with a scripted engine, so that HTTP behavior is tested without weights. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Writable } from 'node:stream';
import winston from 'winston';
import { type App, buildApp } from '../../src/app.ts';
import { type Config, readConfig } from '../../src/config/config.ts';
import { createCrashes } from '../../src/crashes/crashes.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { chooseDevice } from '../../src/engine/device.ts';
import { missingEngine } from '../../src/engine/missing-engine.ts';
import type {
  CallOptions,
  ChunkOptions,
  ComputeDevice,
  DecodedSegment,
  LoadOptions,
  NativeEngine,
  SpeakerModel,
  TranscriptionModel,
} from '../../src/engine/types.ts';
import type { OtherBudgets } from '../../src/limits/budgets.ts';
import type { EnsureOptions, ModelStore } from '../../src/models/store.ts';
import type { Exchange } from '../../src/observability/exchange.ts';
import { until } from '../until.ts';
import { wav } from '../wav.ts';

/** Hardly any test of HTTP does without this. */
export { until };

export interface Script {
  /** Transcribes one chunk. */
  transcribe?(samples: Float32Array, options: ChunkOptions, call: CallOptions): Promise<DecodedSegment[]>;
  /** Loads a model in the place of the scripted one. */
  loadModel?(options: LoadOptions): Promise<TranscriptionModel>;
  /** Tells speakers apart, as `test/voices.ts` does. When absent, the engine cannot, and there are no weights. */
  speakers?: SpeakerModel;
  /** Whether a window is speech. When absent, a loud one is. */
  isSpeech?(window: Float32Array): boolean;
  /** The probability that a turn is complete. When absent, there are no weights that tell it. */
  turns?(samples: Float32Array, signal: AbortSignal | undefined): Promise<number> | number;
  /** Runs when a model is loaded, before the scripted one is made. */
  load?(options: LoadOptions): void;
  /** Devices of the engine; when absent, those that the real one finds. */
  devices?: ComputeDevice[];
  /** Number of chunks that the model takes at once; 1 when absent. */
  lanes?: number;
  /** Ids whose weights are on disk. */
  installed?: string[];
  /** The size of weights on disk; 1000 bytes when absent. */
  weightBytes?(id: string): number;
  /** Fetches absent weights. */
  ensure?(id: string, options: EnsureOptions): Promise<unknown>;
  /** What the store makes ready now. */
  activity?(): ReturnType<ModelStore['activity']>;
  /** Takes the place of the scripted store; `installed` and `ensure` then mean nothing. */
  store?: ModelStore;
  env?: Record<string, string>;
  /** Other limits than the gateway usually has. */
  budgets?: OtherBudgets | undefined;
  engine?: null;
  beforeListening?(server: Server): void;
}

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

/** Is busy until it is told to stop. */
export const untilAborted: NonNullable<Script['transcribe']> = (_samples, _options, { signal }) =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));

/** Makes words of the same length, one after the other. */
export function heard(text: string, wordMs = 100): DecodedSegment[] {
  const tokens = text.split(/(?= )/).map((piece, i) => ({
    id: i + 1,
    bytes: Buffer.from(piece),
    logprob: -0.1,
    startMs: i * wordMs,
    endMs: (i + 1) * wordMs,
  }));
  return [{ startMs: 0, endMs: tokens.length * wordMs, tokens, noSpeechProb: 0.01 }];
}

/** Called with 1 when something begins and with -1 when it ends, and with the name of each model that is loaded. */
interface Seen {
  job(change: number): void;
  opening(change: number): void;
  load(name: string): void;
}

/** The real addon decodes, a loud window counts as speech, and the script transcribes. */
export function scriptedEngine(script: Script, seen: Partial<Seen> = {}): NativeEngine {
  const native = loadNative();
  const languages = ['en', 'de', 'fr', 'zh'];
  return {
    ...native,
    info: { ...native.info, ...(script.devices && { devices: script.devices }) },
    setLogger: () => undefined,
    async openAudio(path, format, hooks) {
      seen.opening?.(1);
      try {
        return await native.openAudio(path, format, hooks);
      } finally {
        seen.opening?.(-1);
      }
    },
    quantize: (options) => native.quantize(options),
    loadVoiceActivity: async ({ path }) => {
      seen.load?.(basename(path));
      const isSpeech = script.isSpeech ?? ((window) => window.some((s) => Math.abs(s) > 0.01));
      return {
        probabilities: async (samples) =>
          Float32Array.from({ length: Math.ceil(samples.length / 512) }, (_, i) =>
            isSpeech(samples.subarray(i * 512, (i + 1) * 512)) ? 0.9 : 0,
          ),
        close: async () => undefined,
      };
    },
    async loadSpeakers({ path }) {
      seen.load?.(basename(path));
      if (script.speakers === undefined) throw new Error('The script has no voices');
      return script.speakers;
    },
    async loadTurnDetector({ path }) {
      seen.load?.(basename(path));
      return {
        probability: async (samples, { signal } = {}) => (await script.turns?.(samples, signal)) ?? 0,
        close: async () => undefined,
      };
    },
    loadModel: async (options) => {
      script.load?.(options);
      seen.load?.(basename(options.path));
      if (script.loadModel) return script.loadModel(options);
      const model: TranscriptionModel = {
        info: {
          family: 'fake',
          languages,
          multilingual: true,
          audioContext: 1500,
          textContext: 448,
          lanes: script.lanes ?? 1,
          memoryBytes: 0,
        },
        async transcribe(samples, options, call = {}) {
          call.signal?.throwIfAborted(); // the addon starts nothing then
          seen.job?.(1);
          try {
            return await (script.transcribe?.(samples, options, call) ?? heard(' Hello there.'));
          } finally {
            seen.job?.(-1);
          }
        },
        detectLanguage: async () => ({ language: 'en', probability: 0.9, probabilities: { en: 0.9 } }),
        lane: async () => model,
        close: async () => undefined,
      };
      return model;
    },
  };
}

export function scriptedStore(script: Script, count: (change: number) => void = () => undefined): ModelStore {
  const usual = [
    ...['multilingual-base', 'voice-activity'],
    ...(script.speakers ? ['diarization'] : []),
    ...(script.turns ? ['turn-detection'] : []),
  ];
  const installed = new Set(script.installed ?? usual);
  return {
    isInstalled: (id: string) => installed.has(id),
    filesOf: (id: string) =>
      installed.has(id) ? [{ file: id, precision: 'q8_0', bytes: script.weightBytes?.(id) ?? 1000 }] : [],
    list: () =>
      [...installed].map((id) => {
        const bytes = script.weightBytes?.(id) ?? 1000;
        return { id, family: 'whisper', installed: true, bytes, files: [] };
      }),
    refresh: async () => undefined,
    activity: () => script.activity?.() ?? [],
    pull: async () => undefined,
    remove: async () => [],
    async ensure(id: string, options: EnsureOptions = {}) {
      count(1);
      try {
        await script.ensure?.(id, options);
      } finally {
        count(-1);
      }
      return { path: join('/nowhere', options.precision ?? '', id) };
    },
  } as unknown as ModelStore;
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
