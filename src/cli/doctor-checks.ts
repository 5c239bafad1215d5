/** What `voxgate doctor` checks. Each check says what it found, or in one sentence what to do. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { get } from 'node:http';
import { connect, createServer } from 'node:net';
import { dirname } from 'node:path';
import {
  baseUrl,
  isLoopback,
  reachable,
  reachedAt,
  socketPathOf,
  withoutTrailingSlashes,
} from '../address.ts';
import { findFfmpeg } from '../audio/ffmpeg-process.ts';
import type { Config } from '../config/config.ts';
import { nvidiaFacts } from '../engine/nvidia.ts';
import { howToGetAddon } from '../engine/prebuilt.ts';
import type { NativeEngine } from '../engine/types.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { cgroupLimits, usableMemoryBytes } from '../machine.ts';
import { CATALOGUE, findModel, VOICE_ACTIVITY } from '../models/catalogue.ts';
import { megabytes, requireSpace } from '../models/disk.ts';
import { publishedFile } from '../models/hub.ts';
import { memoryNeeds, needsInWords } from '../models/memory.ts';
import { proxyFor } from '../models/proxy-connection.ts';
import type { ModelStore, StoredModel, VerifiedFile } from '../models/store.ts';
import { createInventory, type Inventory, type UpstreamHealth } from '../proxy/inventory.ts';
import type { ProblemKind } from '../proxy/probe.ts';
import {
  type Finding,
  folderChecks,
  nearestExisting,
  ok,
  problem,
  warning,
  writable,
} from './folder-checks.ts';
import { type GpuCheckInput, gpuFinding } from './gpu-check.ts';
import { type ListenAddress, listenAddresses, socketState } from './listening-sockets.ts';

export interface Check {
  name: string;
  run(signal: AbortSignal): Promise<Finding>;
}

export interface CheckInput extends GpuCheckInput {
  /** What is odd about the settings. */
  warnings: readonly string[];
  engine: NativeEngine;
  store: ModelStore;
}

const PROBE_MS = 3000;
/** Files that the process opens besides one for each connection. */
const OTHER_FILES = 256;

/** @param verify whether the weights on disk are hashed, which takes seconds for each GB */
export function checksOf(input: CheckInput, verify: boolean): Check[] {
  const { config, engine, store } = input;
  const inventory = createInventory(config, { info: () => undefined, warn: () => undefined });
  const check = (name: string, run: Check['run']): Check => ({ name, run });
  return [
    check('settings', async () => settings(input)),
    check('ffmpeg', () => ffmpeg(config)),
    check('engine', async () => nativeEngine(engine)),
    check('CPU', async () => cpu(engine)),
    check('GPU', async () => gpuFinding(input, await nvidiaFacts(config.environment.PATH ?? ''))),
    check('models', (signal) => models(input, signal)),
    ...(namesProxy(config) ? [check('proxy', (signal) => proxy(config, signal))] : []),
    ...(verify ? [check('hashes', (signal) => hashes(store, signal))] : []),
    check('speech upstream', () => upstream(config, 'tts', inventory)),
    check('chat upstream', () => upstream(config, 'llm', inventory)),
    ...listening(config),
    ...folderChecks(config).map(({ name, run }) => check(`folder of ${name}`, run)),
    check('space for uploads', () => space(config)),
    check('open files', async () => openFiles(config)),
    check('memory', async () => memory(input)),
    check('processors', async () => processors(config)),
  ];
}

/** A key that a program can try out within days has fewer characters than this. */
const LEAST_KEY_CHARACTERS = 16;

function settings({ config: { host, apiKeys, adminKeys }, warnings }: CheckInput): Finding {
  const isShort = (key: string) => key.length < LEAST_KEY_CHARACTERS;
  const short = [
    ...(apiKeys.some(isShort) ? ['SVC_API_KEY'] : []),
    ...(adminKeys.some(isShort) ? ['SVC_ADMIN_KEY'] : []),
  ].map((name) => `a key of ${name} can be guessed: take a random one, as openssl rand -hex 24 prints`);
  const odd = isLoopback(host) ? warnings : [...warnings, ...short];
  return odd.length === 0 ? ok('none is odd') : warning(odd.join('; '));
}

async function ffmpeg({ environment }: Config): Promise<Finding> {
  const { ffmpeg: found, problem: why } = await findFfmpeg(environment.PATH ?? '');
  return found === null
    ? warning(`m4a, mp4, webm, opus and aac are refused, because ${why}: install ffmpeg`)
    : ok(`${found.path} ${found.version}`);
}

function nativeEngine({ info }: NativeEngine): Finding {
  const families = info.families.filter((family) => family !== 'fake'); // which tests load
  return families.length === 0
    ? problem(`nothing can be transcribed without the native engine: ${howToGetAddon()}`)
    : ok(`whisper.cpp ${info.whisperVersion}, ggml ${info.ggmlVersion}: ${families.join(', ')}`);
}

function cpu({ info }: NativeEngine): Finding {
  if (info.families.length === 0) return warning('unknown without the native engine');
  const says = `${info.cpuLevel}: ${info.cpuFeatures.join(' ') || 'no vector instructions'}`;
  const isSlow = process.arch === 'x64' && !/^(avx2|avx512|amx)/.test(info.cpuLevel);
  return isSlow ? warning(`${says}: without AVX2 it is slow, so use a newer CPU or a small model`) : ok(says);
}

async function models({ config, device, store }: CheckInput, signal: AbortSignal): Promise<Finding> {
  const installed = store.list().filter((model) => model.installed);
  const others = store.list().filter((model) => !model.installed);
  // Files of a model that is not installed have a wrong size, which costs no hashing. They keep it from being fetched.
  const wrong = await verifyAll(store, others, signal);
  if (wrong.length > 0) return problem(wrong.map(howToMend).join('; '));
  const speech = installed.filter(({ id }) => findModel(id) !== undefined);
  const lacks = missingWeights(config, store);
  if (lacks === null) return ok(speech.map((model) => inStore(model, device.gpu)).join(', '));
  if (!config.modelDownload) return problem(lacks);
  const wanted = speech.length === 0 ? findModel(`multilingual-${config.modelDefaultSize}`) : VOICE_ACTIVITY;
  const bytes = (wanted && publishedFile(wanted, 'q8_0')?.bytes) ?? 0;
  await requireSpace(await nearestExisting(store.dir), bytes);
  return warning(lacks);
}

/** Without which weights nothing can be transcribed, and what to do; null where some model can. */
export function missingWeights(
  { modelDownload, modelDefaultSize }: Pick<Config, 'modelDownload' | 'modelDefaultSize'>,
  store: Pick<ModelStore, 'dir' | 'isInstalled'>,
): string | null {
  const hasSpeech = CATALOGUE.some(({ id }) => store.isInstalled(id));
  if (hasSpeech && store.isInstalled(VOICE_ACTIVITY.id)) return null;
  const lacks = hasSpeech ? 'the voice activity model is not' : 'no speech model is';
  const so = modelDownload ? ', so the first request downloads it' : ', and SVC_MODEL_DOWNLOAD is off';
  return `${lacks} in ${store.dir}${so}: run voxgate models pull multilingual-${modelDefaultSize}`;
}

/** A model on disk. Where only its 16-bit file is, a CPU gets 8 bits, which somebody has to wait for once. */
function inStore({ id, bytes, files }: StoredModel, onGpu: boolean): string {
  const isMade = !onGpu && findModel(id)?.quantizable && files.every(({ precision }) => precision === 'f16');
  const made = isMade ? `, of which its first use makes 8 bits, or voxgate models pull ${id} now` : '';
  return `${id} (${megabytes(bytes)}${made})`;
}

const namesProxy = ({ environment }: Config) =>
  Object.keys(environment).some((name) => /^(https?|all)_proxy$/i.test(name));

/** Whether the proxy that the environment names lets models be downloaded. Its login is not told. */
async function proxy({ hubEndpoint, modelDownload }: Config, signal: AbortSignal): Promise<Finding> {
  const named = modelDownload ? proxyFor(new URL(hubEndpoint)) : null;
  if (named === null) return ok('models are downloaded without it');
  const port = Number(named.port) || (named.protocol === 'https:' ? 443 : 80);
  const socket = connect({ host: named.hostname.replace(/^\[|\]$/g, ''), port });
  try {
    await once(socket, 'connect', { signal });
    return ok(`models are downloaded through ${named.host}`);
  } catch {
    return warning(
      `models cannot be downloaded, because the proxy ${named.host} does not answer: correct HTTPS_PROXY, HTTP_PROXY or ALL_PROXY, or name the hub in NO_PROXY`,
    );
  } finally {
    socket.destroy();
  }
}

async function hashes(store: ModelStore, signal: AbortSignal): Promise<Finding> {
  const files = await verifyAll(store, store.list(), signal);
  const wrong = files.filter((file) => file.problem !== null);
  return wrong.length === 0
    ? ok(files.map(({ file }) => file).join(', ') || `no weights are in ${store.dir}`)
    : problem(wrong.map(howToMend).join('; '));
}

async function verifyAll(store: ModelStore, models: readonly { id: string }[], signal: AbortSignal) {
  const verified = models.map(async ({ id }) =>
    (await store.verify(id, { signal })).map((file) => ({ id, ...file })),
  );
  return (await Promise.all(verified)).flat();
}

const howToMend = ({ id, path, problem }: VerifiedFile & { id: string }) =>
  `${path}: ${problem}: run voxgate models rm ${id}, then voxgate models pull ${id}`;

/** What GET /v1/models finds of an upstream, because one with a problem is not listed there. */
async function upstream(
  { host, port, ...config }: Config,
  category: UpstreamHealth['category'],
  inventory: Inventory,
): Promise<Finding> {
  const { url } = config[category];
  const setting = category === 'tts' ? 'SVC_TTS_UPSTREAM_URL' : 'SVC_LLM_BACKEND_URL';
  const { origin } = new URL(url);
  if (ownOrigins(host, port).includes(origin))
    return problem(`${origin} is this gateway itself: set ${setting} to another address, or move SVC_PORT`);
  const found = (await inventory.health()).find((health) => health.category === category);
  if (!found?.problem) return ok(`${origin} answers`);
  if (found.isAbsent) return ok(`none: nothing answers at ${origin}, and ${setting} names no other`);
  const { kind, says } = found.problem;
  const key = category === 'tts' ? 'SVC_TTS_API_KEY' : 'SVC_LLM_API_KEY';
  return warning(`${withoutTrailingSlashes(url)} ${says}: ${CURES[kind](setting, key)}`);
}

/** The addresses of a gateway that listens there, as an upstream may be given one by mistake. */
function ownOrigins(host: string, port: number): string[] {
  if (port === 0 || socketPathOf(host) !== undefined) return [];
  const names = isLoopback(reachable(host)) ? [reachable(host), 'localhost'] : [host];
  return names.map((name) => baseUrl(name, port));
}

/** What an operator can do, for each cause. */
const CURES: Readonly<Record<ProblemKind, (setting: string, key: string) => string>> = {
  refused: (setting) => `start it, or correct ${setting}`,
  name: (setting) => `correct the host in ${setting}, or this machine's DNS`,
  unreachable: (setting) => `correct ${setting}, or the network and its firewall`,
  tls: (setting) =>
    `renew it, name its authority in NODE_EXTRA_CA_CERTS, or correct the scheme and the host in ${setting}`,
  timeout: (setting) => `look whether it hangs or a firewall drops the connection, or correct ${setting}`,
  'not-http': (setting) => `correct the port in ${setting}, or begin it with https:// where it speaks TLS`,
  'wants-key': (_setting, key) => `set ${key} to a key of its own`,
  status: (setting) => `its log says why; if that is another program, correct ${setting}`,
  'not-json': (setting) => `set ${setting} to the address that its /v1 is below`,
};

/** Whether the gateway can listen: at its port or Unix socket, and at the port of Wyoming. */
function listening(config: Config): Check[] {
  const [http, wyoming] = listenAddresses(config);
  const path = socketPathOf(http.host);
  return [
    path === undefined
      ? { name: 'port', run: (signal) => port(config, http, signal) }
      : { name: 'Unix socket', run: (signal) => unixSocket(config, path, signal) },
    ...(wyoming
      ? [{ name: 'Wyoming port', run: (signal: AbortSignal) => port(config, wyoming, signal) }]
      : []),
  ];
}

async function unixSocket(config: Config, path: string, over: AbortSignal): Promise<Finding> {
  const found = await socketState(path);
  if (found === 'no socket')
    return problem(`${path} is no socket, and stays: move it, or set SVC_HOST to another path`);
  if (found === 'served')
    return (await isGateway(config, over))
      ? ok(`${path} is in use, and a gateway answers`)
      : problem(
          `${path} is in use by another program, or not open to this user: set SVC_HOST to another path`,
        );
  const folder = dirname(path);
  if ((await nearestExisting(folder)) !== folder)
    return problem(`${folder} is not there: make it, or set SVC_HOST to another path`);
  const { state, says } = await writable(folder, problem, 'SVC_HOST');
  return state === 'ok' ? ok(`${path} is free`) : problem(says);
}

async function port(
  config: Config,
  { host, port: number, setting }: ListenAddress,
  over: AbortSignal,
): Promise<Finding> {
  const error = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    const server = createServer();
    server.once('error', resolve);
    server.listen({ host, port: number, signal: over }, () => server.close(() => resolve(null)));
  });
  const where = `${host}:${number}`;
  if (error === null) return ok(number === 0 ? 'a free one is taken at the start' : `${where} is free`);
  if (error.code === 'EADDRINUSE')
    return (await isGateway(config, over))
      ? ok(`${where} is in use, and a gateway answers`)
      : problem(`${where} is in use by another program: end it, or set ${setting} to another port`);
  if (['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'].includes(error.code ?? ''))
    return problem(`${host} is no address of this machine: set SVC_HOST to one, or to 0.0.0.0 for all`);
  return problem(
    `cannot listen on ${where} (${error.code}): set SVC_HOST or ${setting} to what this user may use`,
  );
}

/**
 * Whether a gateway with these settings runs already. Its other ports do not speak HTTP, so they cannot tell. The timer
 * is held here: Node frees an `AbortSignal.timeout` that nothing but an `AbortSignal.any` holds, and then it never ends
 * the wait.
 */
async function isGateway({ host, port }: Config, over: AbortSignal): Promise<boolean> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), PROBE_MS);
  try {
    const signal = AbortSignal.any([over, late.signal]);
    const { url, socketPath } = reachedAt(baseUrl(reachable(host), port));
    const request = get(`${url}/health`, { socketPath, signal, agent: false });
    request.on('error', () => undefined); // `once` below rejects with the first error
    const [answer] = await once(request, 'response');
    answer.resume();
    return answer.statusCode === 200 && answer.headers['x-request-id'] !== undefined;
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}

/** The types of tmpfs and ramfs (statfs(2)). */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

async function space({ tmpDir, maxUploadBytes, maxSpoolBytes, modelMemoryBytes }: Config): Promise<Finding> {
  const { bavail, bsize, blocks, type } = await statfs(await nearestExisting(tmpDir));
  const spooled = blocks === 0 ? maxSpoolBytes : Math.min(maxSpoolBytes, blocks * bsize);
  if (IN_MEMORY.has(type) && spooled + modelMemoryBytes > usableMemoryBytes())
    return warning(
      `${tmpDir} is in memory, where uploads may take ${megabytes(spooled)} besides the models: set SVC_TMP_DIR to a folder on a disk, or lower SVC_MAX_SPOOL_MB`,
    );
  if (blocks === 0) return ok(`${tmpDir} is in memory, without a limit`);
  const { leastFreeBytes } = BUDGETS.upload;
  const free = bavail * bsize;
  const says = `${megabytes(free)} free in ${tmpDir}`;
  if (free - leastFreeBytes >= maxUploadBytes) return ok(says);
  const less = `less than one upload of SVC_MAX_UPLOAD_MB and the ${megabytes(leastFreeBytes)} that stay free`;
  return warning(`${says} is ${less}: free some, or lower the setting`);
}

/** Node raises its own limit to the hard one, so the hard one counts. */
function openFiles({ maxConnections }: Config): Finding {
  const needed = maxConnections + OTHER_FILES;
  const limit = openFilesLimit();
  if (limit === null) return ok('the limit cannot be read on this system');
  return limit >= needed
    ? ok(`up to ${limit}`)
    : warning(`up to ${limit}, and SVC_MAX_CONNECTIONS needs ${needed}: raise it (ulimit -n, LimitNOFILE=)`);
}

function openFilesLimit(): number | null {
  try {
    const [, hard] = /^Max open files +\S+ +(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return hard === 'unlimited' ? Number.POSITIVE_INFINITY : Number(hard);
  } catch {
    return null;
  }
}

function memory({ config, store }: CheckInput): Finding {
  const { modelMemoryBytes, modelDefaultSize, threads } = config;
  const usable = usableMemoryBytes();
  const limited = Number.isFinite(cgroupLimits().memoryBytes) ? ', the limit of the container' : '';
  const id = `multilingual-${modelDefaultSize}`;
  const model = findModel(id);
  const needs = model && memoryNeeds(model, 'q8_0', { threads, files: store.filesOf(id) });
  const one = needs ? `; ${id} needs ${needsInWords(needs)} of it on the CPU` : '';
  const says = `${megabytes(modelMemoryBytes)} for models of ${megabytes(usable)}${limited}${one}`;
  if (modelMemoryBytes >= usable) return warning(`${says}: lower SVC_MODEL_MEMORY_MB`);
  if (needs && needs.bytes > modelMemoryBytes)
    return warning(`${says}: raise SVC_MODEL_MEMORY_MB, or choose a smaller one with SVC_MODEL_DEFAULT_SIZE`);
  return ok(says);
}

function processors({ threads }: Config): Finding {
  const { cpus } = cgroupLimits();
  const quota = Number.isFinite(cpus) ? `, and a quota of ${cpus} processors` : '';
  return threads > Math.max(1, cpus)
    ? warning(`${threads} threads${quota}: lower SVC_THREADS, or every step waits for a stopped thread`)
    : ok(`${threads} threads for one inference${quota}`);
}
