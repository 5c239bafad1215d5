/**
 * Every setting of the gateway, with its name, meaning, range and default in one schema. Settings are read from
 * `process.env` here only; every other part receives the frozen `Config`.
 */
import { readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { isLoopback, socketPathOf, withoutTrailingSlashes } from '../address.ts';
import { inWords } from '../errors.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { usableMemoryBytes, usefulThreads } from '../machine.ts';
import { SIZES } from '../models/catalogue.ts';
import {
  aliases,
  ConfigError,
  cpuLevel,
  defaultModelDir,
  fileMode,
  folder,
  fromHome,
  httpUrl,
  integer,
  key,
  keys,
  list,
  listenHost,
  MASK,
  NO_PATH,
  number,
  onOff,
  origins,
  refusedSettings,
  secret,
  trustedProxies,
  unknownSettings,
  upstreamUrl,
  withoutLogin,
} from './kinds.ts';

export { ConfigError };

/** The rest is for uploads on a memory file system, decoders, and the system itself. */
const MODEL_MEMORY_SHARE = 0.75;
const DAY_MS = 86_400_000;
const GIB = 1024 ** 3;
const DEFAULT_SPEECH_URL = 'http://127.0.0.1:8091';
const DEFAULT_CHAT_URL = 'http://127.0.0.1:11434';

const listening = {
  SVC_HOST: listenHost
    .default('127.0.0.1')
    .describe('address to listen on, or a Unix socket: `unix:/run/voxgate.sock`'),
  SVC_PORT: integer(0, 65535).default(8000).describe('port to listen on; 0 picks a free one'),
  SVC_SOCKET_MODE: fileMode
    .default('660')
    .describe('permissions of the Unix socket; whoever may write to it may connect'),
  SVC_WYOMING_PORT: integer(0, 65535)
    .optional()
    .describe('port for Wyoming (Home Assistant), usually 10300; 0 picks a free one; empty = none'),
  SVC_WYOMING_KEYLESS: onOff
    .default(false)
    .describe('whether other machines may use Wyoming without a key while `SVC_API_KEY` is set'),
  SVC_MAX_CONNECTIONS: integer(1, 1_000_000).default(512).describe('connections that may be open at once'),
  SVC_KEEP_ALIVE_SEC: number(0.05, 3600)
    .default(130)
    .describe('seconds an idle connection stays open; set it longer than in the reverse proxy'),
  SVC_TRUST_PROXY: trustedProxies.default(0).describe('reverse proxies to trust: how many, or their subnets'),
};

const access = {
  SVC_API_KEY: keys
    .default([])
    .meta(
      secret('keys of which a request must carry one, `key` or `name=key`, comma-separated; empty = open'),
    ),
  SVC_ADMIN_KEY: keys
    .default([])
    .meta(secret('keys that `/admin` and `/metrics` want instead; empty = those of `SVC_API_KEY`')),
  SVC_ALLOWED_HOSTS: list
    .refine(
      (names) => names.every((name) => name === '*' || /^[\w.:[\]-]+$/.test(name)),
      'Expected host names',
    )
    .default([])
    .describe('more host names for the gateway; `*` = any'),
  SVC_CORS_ORIGINS: origins
    .default([])
    .describe('sites whose pages may use the API, comma-separated; `*` = all'),
};

const models = {
  SVC_MODEL_DIR: folder.optional().describe('where weights are kept'),
  SVC_MODEL_DOWNLOAD: onOff.default(true).describe('whether missing weights may be downloaded'),
  SVC_MODEL_DEFAULT_SIZE: z.enum(SIZES).default('small').describe('multilingual size that `auto` prefers'),
  SVC_MODEL_PRELOAD: list.default([]).describe('models to load at start, comma-separated ids or aliases'),
  SVC_MODEL_ALIASES: aliases.default({}).describe('your own names for models, as `name=id`, comma-separated'),
  SVC_MODEL_ALLOW: list
    .default([])
    .describe('models that requests may use, comma-separated ids or aliases; empty = all'),
  HF_ENDPOINT: httpUrl('https://huggingface.co').describe('model hub'),
  HF_TOKEN: z.string().min(1).optional().meta(secret('access token for the model hub')),
};

const machine = {
  SVC_DEVICE: z
    .string()
    .regex(/^(auto|cpu|(cuda|vulkan)(:\d+)?)$/, 'Expected auto, cpu, cuda, vulkan, cuda:<n> or vulkan:<n>')
    .default('auto')
    .describe('where models run: `auto`, `cpu`, `cuda`, `vulkan`, `cuda:<n>` or `vulkan:<n>`'),
  SVC_CPU: cpuLevel.default('auto').describe('CPU instructions that models use'),
  SVC_THREADS: integer(1, 512).optional().describe('threads per inference'),
  SVC_BEAM_SIZE: integer(1, BUDGETS.whisper.maxBeams)
    .default(5)
    .describe('Whisper beams when a text is doubtful; 1 = greedy'),
  SVC_MODEL_KEEP_ALIVE_SEC: number(-1, 31_536_000)
    .default(300)
    .describe('idle seconds before a model is unloaded; 0 = at once, -1 = never'),
  SVC_MODEL_MEMORY_MB: number(1, 16_777_216)
    .optional()
    .describe('memory for all loaded models together, MiB'),
  SVC_TMP_DIR: folder.optional().describe('where uploads are kept while they are needed'),
};

const upstreams = {
  SVC_TTS_UPSTREAM_URL: upstreamUrl(DEFAULT_SPEECH_URL).describe('the speech upstream'),
  SVC_TTS_MODEL_ID: z.string().min(1).max(128).default('tts').describe('its id in the models list'),
  SVC_TTS_TIMEOUT_SEC: number(0.05, 86_400)
    .default(600)
    .describe('seconds of silence before a speech request fails'),
  SVC_TTS_API_KEY: key.optional().meta(secret('key for the speech upstream, sent as a bearer token')),
  SVC_LLM_BACKEND_URL: upstreamUrl(DEFAULT_CHAT_URL).describe('the chat daemon'),
  SVC_LLM_TIMEOUT_SEC: number(0.05, 86_400)
    .default(600)
    .describe('seconds of silence before a chat request fails'),
  SVC_LLM_API_KEY: key.optional().meta(secret('key for the chat daemon, sent as a bearer token')),
};

const bounds = {
  SVC_MAX_UPLOAD_MB: number(0.001, 1_048_576).default(2048).describe('largest upload, MiB'),
  SVC_MAX_UPLOADS: integer(1, 4096).default(16).describe('transcription requests received or kept at once'),
  SVC_MAX_SPOOL_MB: number(0.001, 1_048_576)
    .default(8192)
    .describe('disk space for all uploads together, MiB; at least `SVC_MAX_UPLOAD_MB`'),
  SVC_MAX_AUDIO_SEC: number(1, 604_800).default(21_600).describe('longest audio, seconds'),
  SVC_MAX_HOLD_SEC: number(0.1, 604_800)
    .default(21_600)
    .describe('longest time one request may hold the slot, seconds'),
  SVC_MAX_LIVE_SESSIONS: integer(1, 4096).default(32).describe('live sessions that may be open at once'),
};

const waits = {
  SVC_MAX_WAIT_SEC: integer(0, 3600)
    .default(0)
    .describe('longest wait for the slot that a request may ask for, seconds; 0 = no waiting'),
  SVC_DEFAULT_WAIT_SEC: integer(0, 3600)
    .default(0)
    .describe(
      'how long requests wait for the slot without asking, seconds; 0 = a busy slot is a 503 at once',
    ),
  SVC_LIVE_WAIT_SEC: number(0, 600)
    .default(10)
    .describe('longest time an utterance of a live session waits for the slot, seconds'),
  SVC_DRAIN_SEC: number(0, 3600)
    .default(30)
    .describe('how long running requests may finish when the gateway stops, seconds'),
};

const records = {
  SVC_LOG_LEVEL: z
    .enum(['error', 'warn', 'info', 'debug'])
    .default('info')
    .describe('how detailed the log is'),
  SVC_OBS_METRICS_ENABLED: onOff.default(true).describe('whether metrics are on at start'),
  SVC_OBS_METRICS_WINDOW_SEC: integer(1, 86_400)
    .default(3600)
    .describe('rolling window of the metrics, seconds'),
  SVC_OBS_ACCESS_LOG_ENABLED: onOff.default(true).describe('whether the access log is on at start'),
  SVC_OBS_LOG_DIR: folder
    .default('logs')
    .describe('folder of the access log; `-` writes it to standard output'),
  SVC_OBS_LOG_PROBES: onOff
    .default(false)
    .describe('whether it also logs `/health`, `/ready` and `/metrics` when all is well'),
  SVC_OBS_LOG_MAX_DAYS: number(0, 36_500).default(30).describe('days to keep access logs; may be a fraction'),
  SVC_OBS_LOG_MAX_GB: number(0.001, 1_048_576)
    .default(1)
    .describe('largest size of all access logs, GiB; the oldest go first; may be a fraction'),
  SVC_OBS_PAYLOAD_ENABLED: onOff.default(false).describe('whether payload capture is on at start'),
  SVC_OBS_PAYLOAD_DIR: folder.default('payloads').describe('folder for captures'),
  SVC_OBS_PAYLOAD_MAX_DAYS: number(0, 36_500).default(7).describe('days to keep captures; may be a fraction'),
  SVC_OBS_PAYLOAD_MAX_GB: number(0, 1_048_576)
    .default(5)
    .describe('largest size of all captures, GiB; the oldest go first; may be a fraction'),
  SVC_CRASH_DIR: folder.default('crashes').describe('folder for crash records'),
};

/** The settings in groups, by what an operator wants to do. */
export const SETTING_GROUPS = {
  'Listen for clients': listening,
  'Say who may ask': access,
  'Choose the models': models,
  'Use the machine': machine,
  'Pass on speech and chat': upstreams,
  'Bound what requests take': bounds,
  'Wait for the slot, and stop': waits,
  'See what happened': records,
} as const;

export const settings = z.object({
  ...listening,
  ...access,
  ...models,
  ...machine,
  ...upstreams,
  ...bounds,
  ...waits,
  ...records,
});

/** Settings as a program gives them. */
export type Settings = Readonly<Partial<Record<keyof typeof settings.shape, string | number | boolean>>>;

/** A service behind the gateway that it forwards requests to. */
export interface UpstreamConfig {
  readonly url: string;
  /** A call fails when the upstream sends nothing for this long. */
  readonly timeoutMs: number;
  /** Sent to the upstream as a bearer, in place of what the client sends. */
  readonly apiKey: string | undefined;
  /** False for the default address, where nothing need be. */
  readonly isConfigured: boolean;
}

/** A setting that is set: its value as it may be shown, and where that came from. */
export interface GivenSetting {
  /** A secret is masked. */
  readonly value: string;
  /** `file`: a secret that was read from a file. `program`: the program that started this gateway in its process. */
  readonly source: 'environment' | 'file' | 'program';
}

export type Config = Readonly<ReturnType<typeof configOf>>;

/**
 * Reads the settings. An empty value counts as absent, as in a compose file. One of spaces alone does not: a setting that
 * protects, such as a key, must not be lost to a template that did not fill it in.
 * @param own settings that stand before those of the environment
 * @throws ConfigError that names the setting, its value and what is allowed.
 */
export function readConfig(around = process.env, own: Settings = {}): { config: Config; warnings: string[] } {
  // A caller may hand on a variable of the environment that is not set.
  const texts = Object.entries(own).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, `${value}`]],
  );
  const env: NodeJS.ProcessEnv = { ...around, ...Object.fromEntries(texts) };
  const given = givenSettings(env);
  const parsed = settings.safeParse(given);
  if (!parsed.success) throw refusedSettings(settings.shape, given, parsed.error);
  const config = configOf(parsed.data, env, asShown(given, env, own));
  const refusal = refusesPorts(config) ?? refusesWyoming(config, parsed.data.SVC_WYOMING_KEYLESS);
  if (refusal !== null) throw new ConfigError(refusal);
  const known = [...Object.keys(settings.shape), ...SECRETS.map((name) => `${name}_FILE`)];
  const warnings = [...unknownSettings(Object.keys(env), known), ...exposure(config)];
  return { config: Object.freeze(config), warnings };
}

function upstreamsOf(s: z.output<typeof settings>) {
  return {
    tts: {
      url: s.SVC_TTS_UPSTREAM_URL,
      timeoutMs: s.SVC_TTS_TIMEOUT_SEC * 1000,
      modelId: s.SVC_TTS_MODEL_ID,
      apiKey: s.SVC_TTS_API_KEY,
      isConfigured: s.SVC_TTS_UPSTREAM_URL !== DEFAULT_SPEECH_URL,
    },
    llm: {
      url: s.SVC_LLM_BACKEND_URL,
      timeoutMs: s.SVC_LLM_TIMEOUT_SEC * 1000,
      apiKey: s.SVC_LLM_API_KEY,
      isConfigured: s.SVC_LLM_BACKEND_URL !== DEFAULT_CHAT_URL,
    },
  };
}

function listeningOf(s: z.output<typeof settings>, env: NodeJS.ProcessEnv) {
  return {
    host: s.SVC_HOST,
    port: s.SVC_PORT,
    /** The permissions of the Unix socket. */
    socketMode: Number.parseInt(s.SVC_SOCKET_MODE, 8),
    /** Undefined: Wyoming is not spoken. */
    wyomingPort: s.SVC_WYOMING_PORT,
    /** What systemd tells a service that it watches, in variables of its own. */
    systemd: {
      notifySocket: env.NOTIFY_SOCKET,
      watchdogMs: env.WATCHDOG_USEC ? Number(env.WATCHDOG_USEC) / 1000 : Number.POSITIVE_INFINITY,
    },
  };
}

function observabilityOf(s: z.output<typeof settings>) {
  return {
    /** Which instruments are on at the start; the admin API can switch them later. */
    metrics: s.SVC_OBS_METRICS_ENABLED,
    accessLog: s.SVC_OBS_ACCESS_LOG_ENABLED,
    payload: s.SVC_OBS_PAYLOAD_ENABLED,
    metricsWindowSec: s.SVC_OBS_METRICS_WINDOW_SEC,
    /** `-` is standard output. */
    logDir: s.SVC_OBS_LOG_DIR === '-' ? '-' : resolve(s.SVC_OBS_LOG_DIR),
    logProbes: s.SVC_OBS_LOG_PROBES,
    logMaxAgeMs: s.SVC_OBS_LOG_MAX_DAYS * DAY_MS,
    logMaxBytes: s.SVC_OBS_LOG_MAX_GB * GIB,
    payloadDir: resolve(s.SVC_OBS_PAYLOAD_DIR),
    payloadMaxAgeMs: s.SVC_OBS_PAYLOAD_MAX_DAYS * DAY_MS,
    payloadMaxBytes: s.SVC_OBS_PAYLOAD_MAX_GB * GIB,
  };
}

/** The settings under the names of the code, with a unit in the name where there is one. */
function configOf(
  s: z.output<typeof settings>,
  env: NodeJS.ProcessEnv,
  given: Readonly<Record<string, GivenSetting>>,
) {
  const keepAlive = s.SVC_MODEL_KEEP_ALIVE_SEC;
  return {
    /** The settings that are set, for people to see. */
    given,
    ...listeningOf(s, env),
    ...upstreamsOf(s),
    modelDir: resolve(s.SVC_MODEL_DIR ?? defaultModelDir(env)),
    modelDownload: s.SVC_MODEL_DOWNLOAD,
    modelDefaultSize: s.SVC_MODEL_DEFAULT_SIZE,
    modelKeepAliveMs: keepAlive < 0 ? Number.POSITIVE_INFINITY : keepAlive * 1000,
    modelPreload: s.SVC_MODEL_PRELOAD,
    modelAliases: s.SVC_MODEL_ALIASES,
    /** The most memory of all loaded models together. */
    modelMemoryBytes: s.SVC_MODEL_MEMORY_MB
      ? toBytes(s.SVC_MODEL_MEMORY_MB)
      : MODEL_MEMORY_SHARE * usableMemoryBytes(),
    /** The ids or aliases of the models that requests may use; when empty, all. */
    modelAllow: s.SVC_MODEL_ALLOW,
    device: s.SVC_DEVICE,
    cpu: s.SVC_CPU,
    maxConnections: s.SVC_MAX_CONNECTIONS,
    /** The wait for another request. Usual reverse proxies close first, so they never use a closing connection. */
    keepAliveMs: s.SVC_KEEP_ALIVE_SEC * 1000,
    threads: s.SVC_THREADS ?? usefulThreads(),
    /** Texts that Whisper follows side by side where a chunk is in doubt. */
    beamSize: s.SVC_BEAM_SIZE,
    maxUploadBytes: toBytes(s.SVC_MAX_UPLOAD_MB),
    maxUploads: s.SVC_MAX_UPLOADS,
    /** At least `maxUploadBytes`. */
    maxSpoolBytes: toBytes(Math.max(s.SVC_MAX_SPOOL_MB, s.SVC_MAX_UPLOAD_MB)),
    maxAudioSec: s.SVC_MAX_AUDIO_SEC,
    maxHoldMs: s.SVC_MAX_HOLD_SEC * 1000,
    /** 0: no request may wait for the slot. */
    maxWaitSec: s.SVC_MAX_WAIT_SEC,
    /** The wait of a request that asks for none; also where it is longer than `maxWaitSec`. */
    defaultWaitSec: s.SVC_DEFAULT_WAIT_SEC,
    maxLiveSessions: s.SVC_MAX_LIVE_SESSIONS,
    /** The longest time that an utterance waits for the slot. */
    liveWaitMs: s.SVC_LIVE_WAIT_SEC * 1000,
    /** The time that requests under way have to end when the gateway stops. */
    drainMs: s.SVC_DRAIN_SEC * 1000,
    tmpDir: resolve(s.SVC_TMP_DIR ?? tmpdir()),
    /** When empty, every client that can reach the gateway may use it. */
    apiKeys: s.SVC_API_KEY.map(({ key }) => key),
    /** What `/admin` and `/metrics` want; when empty, a key of `apiKeys`. */
    adminKeys: s.SVC_ADMIN_KEY.map(({ key }) => key),
    /** The names of the keys that have one. */
    keyNames: new Map(
      [...s.SVC_API_KEY, ...s.SVC_ADMIN_KEY].flatMap(({ name, key }) => (name ? [[key, name]] : [])),
    ),
    corsOrigins: s.SVC_CORS_ORIGINS,
    allowedHosts: s.SVC_ALLOWED_HOSTS,
    /** How many reverse proxies are in front, or their subnets; 0 trusts none. */
    trustProxy: s.SVC_TRUST_PROXY,
    observability: observabilityOf(s),
    /** Where records of crashes are kept. */
    crashDir: resolve(s.SVC_CRASH_DIR),
    logLevel: s.SVC_LOG_LEVEL,
    hubEndpoint: withoutTrailingSlashes(s.HF_ENDPOINT),
    hubToken: s.HF_TOKEN,
    /** The environment that child processes inherit. It has PATH and the settings of pip, and no key of this process. */
    environment: childEnvironment(env),
  };
}

/** The settings whose values are never shown, and may be read from files, as those of Docker and Kubernetes. */
const SECRETS = Object.entries<z.ZodType>(settings.shape).flatMap(([name, kind]) =>
  kind.meta()?.secret === true ? [name] : [],
);
const MAX_SECRET_BYTES = 64 * 1024;

/**
 * The settings that the environment holds, as text.
 * @throws ConfigError for a value of spaces alone or in quotation marks, and for a secret whose file cannot be read or
 *   holds nothing
 */
function givenSettings(env: NodeJS.ProcessEnv): Record<string, string> {
  const texts = Object.keys(settings.shape).flatMap((name) => {
    const text = env[name] ?? '';
    const file = SECRETS.includes(name) ? (env[`${name}_FILE`] ?? '') : '';
    if (file === '') return text === '' ? [] : [[name, text.trim()] as const];
    if (text !== '') throw new ConfigError(`${name} and ${name}_FILE are both set: leave one of them out`);
    return [[name, secretIn(file, `${name}_FILE`)] as const];
  });
  const blank = texts.find(([, text]) => text === '');
  if (blank) throw new ConfigError(`${blank[0]} holds only spaces: give it a value, or leave it out`);
  // A shell takes quotation marks off, and `docker run --env-file` leaves them: a folder or a key would have them in it.
  const quoted = texts.find(([, text]) => /^(["']).*\1$/s.test(text));
  if (quoted) throw new ConfigError(`${quoted[0]} is in quotation marks: leave them out`);
  return Object.fromEntries(texts);
}

function asShown(
  given: Readonly<Record<string, string>>,
  env: NodeJS.ProcessEnv,
  own: Settings,
): Record<string, GivenSetting> {
  const sourceOf = (name: string) => {
    if (Object.entries(own).some(([set, value]) => set === name && value !== undefined)) return 'program';
    return SECRETS.includes(name) && env[`${name}_FILE`] ? 'file' : 'environment';
  };
  return Object.fromEntries(
    Object.entries(given).map(([name, text]) => {
      const value = SECRETS.includes(name) ? MASK : withoutLogin(text);
      return [name, { value, source: sourceOf(name) }];
    }),
  );
}

/** The lines of a file as a list. As in other files of keys, a line that begins with `#` is a comment. */
function secretIn(named: string, setting: string): string {
  const path = fromHome(named.trim());
  if (path === null) throw new ConfigError(`${setting} cannot be "${named}": ${NO_PATH}`);
  let text: string;
  try {
    const file = statSync(path);
    if (!file.isFile()) throw new Error('it is no file');
    if (file.size > MAX_SECRET_BYTES) throw new Error(`it has ${file.size} bytes`);
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${setting}: ${path} cannot be read: ${inWords(error).replace(`${path}: `, '')}`);
  }
  const lines = text.split('\n').map((line) => line.trim());
  const secret = lines.filter((line) => line !== '' && !line.startsWith('#')).join(',');
  if (secret === '') throw new ConfigError(`${setting}: ${path} is empty, or has only comments (#)`);
  return secret;
}

const toBytes = (mebibytes: number) => Math.floor(mebibytes * 1024 * 1024);

/** What ffmpeg, Python and pip need: programs, folders, language, proxies, certificates and the settings of pip; and the GPUs that there are. */
const FOR_CHILDREN =
  /^(PATH|HOME|USER|LOGNAME|TMPDIR|LANG|TZ|LC_.*|XDG_.*|NETRC|PIP_.*|KEYRING_.*|(https?|all|no)_proxy|CUDA_VISIBLE_DEVICES|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|SYSTEMROOT)$/i;

/** Keys and tokens are in the environment as well, so only what is needed is handed on. */
function childEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => FOR_CHILDREN.test(name)));
}

/** Why the gateway cannot listen on its ports; null if it can. The system picks different ones for 0. */
function refusesPorts({ host, port, wyomingPort }: Config): string | null {
  if (port === 0 || port !== wyomingPort || socketPathOf(host) !== undefined) return null;
  return `SVC_PORT and SVC_WYOMING_PORT cannot both be ${port}: set one of them to another port`;
}

type Reach = Pick<Config, 'host' | 'apiKeys' | 'adminKeys' | 'wyomingPort'>;

/** Over HTTP every request needs a key then, and over Wyoming, which has none, it would not. */
const passesKeys = ({ host, apiKeys, wyomingPort }: Reach) =>
  wyomingPort !== undefined && apiKeys.length > 0 && !isLoopback(host);

/**
 * Why the gateway may not start; null if it may.
 * @param isMeant the operator has said that Wyoming may pass by the keys
 */
function refusesWyoming(reach: Reach, isMeant: boolean): string | null {
  if (isMeant || !passesKeys(reach)) return null;
  const open = `SVC_WYOMING_PORT with SVC_HOST=${reach.host} would let other machines pass by SVC_API_KEY`;
  return `${open}: Wyoming has no keys; SVC_WYOMING_KEYLESS=on allows it, for a network that is trusted`;
}

/** What is open to every machine that reaches the gateway. */
function exposure(reach: Reach): string[] {
  if (passesKeys(reach)) return ['everyone who reaches SVC_WYOMING_PORT may transcribe: Wyoming has no keys'];
  if (isLoopback(reach.host) || reach.apiKeys.length > 0) return [];
  const open = `SVC_HOST=${reach.host} lets other machines reach the gateway, and SVC_API_KEY is not set`;
  const all = reach.adminKeys.length > 0 ? 'the API' : 'all of it, the dashboard included';
  return [`${open}: everyone who reaches it may use ${all}`];
}
