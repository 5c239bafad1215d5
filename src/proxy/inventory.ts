/**
 * Lists the models that the upstreams can serve right now (contract 4.2), and says why an upstream cannot. Both are asked
 * at the same time, within one short limit, and their answers are kept for two seconds, so that requests in a row do not
 * all wait for a dead upstream.
 */
import { z } from 'zod';
import { cachedFor } from '../cached-answer.ts';
import type { Config, UpstreamConfig } from '../config/config.ts';
import { readUpTo } from '../streams.ts';
import { type ProblemKind, probe, problemOfStatus, timedOut, UpstreamProblem } from './probe.ts';

export interface UpstreamModel {
  id: string;
  category: 'tts' | 'llm';
  /** True for a model of the chat daemon that makes vectors of texts and does not chat. */
  embeds: boolean;
  /** Unix seconds, if the upstream gives them. */
  created: number | undefined;
  ownedBy: string | undefined;
}

export interface UpstreamHealth {
  category: 'tts' | 'llm';
  /** Why it cannot serve; null when it can. `says` goes on after its name. */
  problem: { kind: ProblemKind; says: string } | null;
  /** True when nothing is at the default address: who names no upstream wants transcription alone. */
  isAbsent: boolean;
  /** When it was first found to be so. */
  since: Date;
}

export type Inventory = ReturnType<typeof createInventory>;

interface InventoryLog {
  info(message: string, details: object): void;
  warn(message: string, details: object): void;
}

/** What an upstream can serve. */
interface Found {
  models: UpstreamModel[];
  /** The names of models that its calls may have. */
  names: string[];
}

interface Answer extends Found, Pick<UpstreamHealth, 'category' | 'problem'> {}

const PROBE_LIMIT_MS = 1000;
const KEPT_FOR_MS = 2000;
/** Far more than any real list, so a longer answer is not a list. */
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_MODELS = 1000;
/** Home Assistant gets each of them once for every language. */
const MAX_VOICES = 200;

/** None of its functions ever rejects: an upstream that does not answer has no models. */
export function createInventory(
  config: Pick<Config, 'tts' | 'llm'>,
  log: InventoryLog,
  now = () => performance.now(),
) {
  const listed = new Map<Answer['category'], ReadonlySet<string>>();
  const notice = createNotice(config, log);
  const answers = cachedFor(
    KEPT_FOR_MS,
    async () => {
      const answers = await Promise.all([
        answerOf('tts', probeSpeech(config.tts)),
        answerOf('llm', probeChat(config.llm).then(withNames)),
      ]);
      for (const { category, problem, names } of answers)
        if (problem === null) listed.set(category, new Set(names));
      return answers.map((answer) => ({ ...answer, ...notice(answer) }));
    },
    now,
  );
  const voices = cachedFor(KEPT_FOR_MS, () => voicesOf(config.tts), now);
  return {
    models: async () => (await answers()).flatMap(({ models }) => models),
    /** How the upstreams are, as they were when they were asked last, at most two seconds ago. */
    health: async (): Promise<UpstreamHealth[]> =>
      (await answers()).map(({ models, names, ...health }) => health),
    /**
     * The name under which the upstream listed the model, when it was asked last; undefined for any other. Ollama takes a
     * name without its tag for that of the tag `latest`.
     */
    nameOf: (category: UpstreamHealth['category'], model: string) =>
      [model, `${model}:latest`].find((name) => listed.get(category)?.has(name) === true),
    /** The names of the speech upstream's voices: none where it has no list, and null while it cannot serve. */
    async voices(): Promise<string[] | null> {
      const speech = (await answers()).find(({ category }) => category === 'tts');
      return speech?.problem === null ? await voices() : null;
    },
  };
}

async function answerOf(category: Answer['category'], asked: Promise<Found>): Promise<Answer> {
  try {
    return { category, problem: null, ...(await asked) };
  } catch (error) {
    const kind = error instanceof UpstreamProblem ? error.kind : 'unreachable';
    return { category, problem: { kind, says: (error as Error).message }, models: [], names: [] };
  }
}

const withNames = (models: UpstreamModel[]): Found => ({ models, names: models.map(({ id }) => id) });

const NAMES = { tts: 'speech upstream', llm: 'chat daemon' } as const;

/**
 * Tells since when an upstream is as it is. Writes a line whenever one begins or ceases to serve, or the reason changes.
 */
function createNotice(config: Pick<Config, 'tts' | 'llm'>, log: InventoryLog) {
  const before = new Map<Answer['category'], { says: string | undefined; since: Date }>();
  return ({ category, problem }: Answer): Pick<UpstreamHealth, 'isAbsent' | 'since'> => {
    const { url, isConfigured } = config[category];
    const last = before.get(category);
    const isAbsent = problem?.kind === 'refused' && !isConfigured;
    const says = problem?.says;
    if (last !== undefined && last.says === says) return { isAbsent, since: last.since };
    const since = new Date();
    before.set(category, { says, since });
    const isNews = last === undefined ? problem !== null && isConfigured : true;
    if (isNews && problem === null) log.info(`The ${NAMES[category]} serves`, { url });
    else if (isNews) log.warn(`The ${NAMES[category]} ${says}`, { url });
    return { isAbsent, since };
  };
}

/** The paths that tell what an upstream can serve. */
const PROBES = {
  speech: '/health',
  voices: '/v1/audio/voices',
  openaiModels: '/v1/models',
  ollamaModels: '/api/tags',
} as const;

/**
 * A server without `/health` is up, unless its list of models says otherwise, and it need not have that either. The
 * list is no part of ours: it tells the names that calls may have.
 */
async function probeSpeech({ modelId, ...upstream }: Config['tts']): Promise<Found> {
  const signal = AbortSignal.timeout(PROBE_LIMIT_MS);
  const [health, list] = await Promise.allSettled([
    assertHealthy(upstream, signal),
    getJson(upstream, PROBES.openaiModels, openaiList, signal),
  ]);
  if (health.status === 'rejected') {
    if (!isNotServed(health.reason)) throw health.reason;
    const isUp = list.status === 'fulfilled' || isNotServed(list.reason) || list.reason.kind === 'not-json';
    if (!isUp) throw list.reason;
  }
  const names = list.status === 'fulfilled' ? valid(list.value.data ?? [], openaiEntry) : [];
  return {
    models: [{ id: modelId, category: 'tts', embeds: false, created: undefined, ownedBy: undefined }],
    names: names.map(({ id }) => id),
  };
}

/** The path is not there, or not for a GET. */
const isNotServed = (error: unknown) =>
  error instanceof UpstreamProblem && (error.status === 404 || error.status === 405);

async function assertHealthy(upstream: UpstreamConfig, signal: AbortSignal): Promise<void> {
  const answer = await probe(upstream, PROBES.speech, signal);
  await answer.body?.cancel().catch(() => undefined);
  if (!answer.ok) throw problemOfStatus(answer.status, PROBES.speech, upstream);
}

const id = z.string().min(1).max(256);
/** Speech servers list names, or objects that have one, alone or in a member. */
const voiceEntry = z.union([
  id,
  z.object({ voice_id: id }).transform((entry) => entry.voice_id),
  z.object({ id }).transform((entry) => entry.id),
  z.object({ name: id }).transform((entry) => entry.name),
]);
const voiceList = z.union([
  z.array(z.unknown()),
  z.object({ voices: z.array(z.unknown()) }).transform(({ voices }) => voices),
  z.object({ data: z.array(z.unknown()) }).transform(({ data }) => data),
]);

async function voicesOf(upstream: UpstreamConfig): Promise<string[]> {
  const signal = AbortSignal.timeout(PROBE_LIMIT_MS);
  const list = await getJson(upstream, PROBES.voices, voiceList, signal).catch(() => []);
  return [...new Set(valid(list, voiceEntry))].slice(0, MAX_VOICES);
}
const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);
/** Daemons differ in the members that they leave null, so an entry needs only a valid name. */
const openaiEntry = z.object({
  id,
  created: optional(z.int()),
  owned_by: optional(z.string()),
  /** Of llama.cpp, LM Studio and others. */
  capabilities: optional(z.array(z.string())),
  type: optional(z.string()),
});
const openaiList = z.object({ data: z.array(z.unknown()).nullable() });
/** https://github.com/ollama/ollama/blob/main/docs/api.md#list-local-models */
const ollamaEntry = z.object({
  name: id,
  modified_at: optional(z.string()),
  capabilities: optional(z.array(z.string())),
  details: optional(z.object({ family: optional(z.string()) })),
});
const ollamaList = z.object({ models: z.array(z.unknown()) });

/** Keeps the entries that fit the schema, in their order. */
const valid = <T>(entries: readonly unknown[], schema: z.ZodType<T>): T[] =>
  entries.slice(0, MAX_MODELS).flatMap((entry) => schema.safeParse(entry).data ?? []);

/** Names of embedding models, where a daemon gives nothing but names: `nomic-embed-text`, `bge-m3`, `all-minilm`. */
const EMBEDDING_NAME = /embed|(?:^|[/_-])(?:bge|gte|e5|minilm)(?![a-z])/i;

interface Marks {
  name: string;
  capabilities?: string[] | undefined;
  type?: string | undefined;
  family?: string | undefined;
}

/** What the daemon says counts before what the name says. */
function isEmbedding({ name, capabilities, type, family = '' }: Marks): boolean {
  if (capabilities !== undefined && capabilities.length > 0)
    return capabilities.every((capability) => /^embed/i.test(capability));
  if (type !== undefined && /^(llm|vlm|embed)/i.test(type)) return /^embed/i.test(type);
  return /bert$/i.test(family) || (EMBEDDING_NAME.test(name) && !/rerank/i.test(name));
}

/**
 * A daemon of Ollama has both lists, and only its own tells what a model is for.
 * @throws UpstreamProblem where there is neither list, for the reason that OpenAI's list could not be read
 */
async function probeChat(upstream: UpstreamConfig): Promise<UpstreamModel[]> {
  const signal = AbortSignal.timeout(PROBE_LIMIT_MS);
  const [openai, ollama] = await Promise.allSettled([
    getJson(upstream, PROBES.openaiModels, openaiList, signal),
    getJson(upstream, PROBES.ollamaModels, ollamaList, signal),
  ]);
  const tags = ollama.status === 'fulfilled' ? valid(ollama.value.models, ollamaEntry) : [];
  if (openai.status === 'fulfilled') {
    const tagOf = new Map(tags.map((tag) => [tag.name, tag]));
    return valid(openai.value.data ?? [], openaiEntry).map(
      ({ id, created, owned_by, capabilities, type }) => {
        const tag = tagOf.get(id);
        const marks = { capabilities: capabilities ?? tag?.capabilities, type, family: tag?.details?.family };
        return {
          id,
          category: 'llm',
          embeds: isEmbedding({ name: id, ...marks }),
          created,
          ownedBy: owned_by,
        };
      },
    );
  }
  if (ollama.status === 'rejected') throw openai.reason;
  return tags.map(({ name, modified_at, capabilities, details }) => {
    const modifiedMs = Date.parse(modified_at ?? '');
    const created = Number.isNaN(modifiedMs) ? undefined : Math.floor(modifiedMs / 1000);
    const embeds = isEmbedding({ name, capabilities, family: details?.family });
    return { id: name, category: 'llm', embeds, created, ownedBy: undefined };
  });
}

/**
 * What a path answers, if it fits the schema.
 * @throws UpstreamProblem unless it is JSON of at most `MAX_LIST_BYTES` that arrives in time
 */
async function getJson<T>(
  upstream: UpstreamConfig,
  path: string,
  schema: z.ZodType<T>,
  signal: AbortSignal,
): Promise<T> {
  const answer = await probe(upstream, path, signal);
  try {
    if (!answer.ok) throw problemOfStatus(answer.status, path, upstream);
    const parsed = schema.safeParse(JSON.parse(await textOf(answer)));
    if (parsed.success) return parsed.data;
  } catch (error) {
    await answer.body?.cancel().catch(() => undefined);
    if (error instanceof UpstreamProblem) throw error;
    if (signal.aborted) throw timedOut();
  }
  const isPage = answer.headers.get('content-type')?.startsWith('text/html') === true;
  const what = isPage ? 'a web page' : 'something';
  throw new UpstreamProblem('not-json', `answers ${path} with ${what} that is no list of models`);
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Buffer[] = [];
  const isWhole = body === null || (await readUpTo(body, MAX_LIST_BYTES, chunks));
  if (!isWhole) throw new Error('too long for a list of models');
  return Buffer.concat(chunks).toString('utf8');
}
