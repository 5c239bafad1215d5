/**
 * Lists the models that the upstreams can serve right now (contract 4.2), and says why an upstream cannot. Both are asked
 * at the same time, within one short limit, and their answers are kept for two seconds, so that requests in a row do not
 * all wait for a dead upstream.
 */
import { z } from 'zod';
import type { Config, UpstreamConfig } from '../config/config.ts';
import { probe, problemOfStatus, UpstreamProblem } from './probe.ts';

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
  /** Why it cannot serve, in words that go on after its name; null when it can. */
  problem: string | null;
}

/** Never rejects: an upstream that does not answer has no models. */
export interface Inventory {
  models(): Promise<UpstreamModel[]>;
  /** How the upstreams are, as they were when they were asked last, at most two seconds ago. */
  health(): Promise<UpstreamHealth[]>;
}

interface InventoryLog {
  info(message: string, details: object): void;
  warn(message: string, details: object): void;
}

interface Answer extends UpstreamHealth {
  models: UpstreamModel[];
}

const PROBE_LIMIT_MS = 1000;
const KEPT_FOR_MS = 2000;
/** Far more than any real list, so a longer answer is not a list. */
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_MODELS = 1000;

export function createInventory(
  config: Pick<Config, 'tts' | 'llm'>,
  log: InventoryLog,
  now = () => performance.now(),
): Inventory {
  let kept: { answers: Promise<Answer[]>; until: number } | null = null;
  const notice = createNotice(config, log);
  const ask = async () => {
    const answers = await Promise.all([
      answerOf('tts', probeSpeech(config.tts)),
      answerOf('llm', probeChat(config.llm)),
    ]);
    answers.forEach(notice);
    return answers;
  };
  const answers = () => {
    if (kept === null || now() >= kept.until) {
      const fresh = { answers: ask(), until: Number.POSITIVE_INFINITY };
      kept = fresh;
      void fresh.answers.then(() => {
        fresh.until = now() + KEPT_FOR_MS;
      });
    }
    return kept.answers;
  };
  return {
    models: async () => (await answers()).flatMap(({ models }) => models),
    health: async () => (await answers()).map(({ category, problem }) => ({ category, problem })),
  };
}

async function answerOf(category: Answer['category'], asked: Promise<UpstreamModel[]>): Promise<Answer> {
  try {
    return { category, problem: null, models: await asked };
  } catch (error) {
    const problem = error instanceof UpstreamProblem ? error.message : `fails: ${(error as Error).message}`;
    return { category, problem, models: [] };
  }
}

const NAMES = { tts: 'speech upstream', llm: 'chat daemon' } as const;

/** Writes a line whenever an upstream begins or ceases to serve, or the reason changes. */
function createNotice(config: Pick<Config, 'tts' | 'llm'>, log: InventoryLog) {
  const before = new Map<Answer['category'], string | null>();
  return ({ category, problem }: Answer) => {
    const { url, isConfigured } = config[category];
    const isFirst = !before.has(category);
    const isNews = isFirst ? problem !== null && isConfigured : before.get(category) !== problem;
    before.set(category, problem);
    if (!isNews) return;
    if (problem === null) log.info(`The ${NAMES[category]} serves`, { url });
    else log.warn(`The ${NAMES[category]} ${problem}`, { url });
  };
}

/** The paths that tell what an upstream can serve. */
const PROBES = { speech: '/health', openaiModels: '/v1/models', ollamaModels: '/api/tags' } as const;

async function probeSpeech({ modelId, ...upstream }: Config['tts']): Promise<UpstreamModel[]> {
  const answer = await probe(upstream, PROBES.speech, AbortSignal.timeout(PROBE_LIMIT_MS));
  await answer.body?.cancel().catch(() => undefined);
  if (!answer.ok) throw problemOfStatus(answer.status, PROBES.speech);
  return [{ id: modelId, category: 'tts', embeds: false, created: undefined, ownedBy: undefined }];
}

const id = z.string().min(1).max(256);
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
    if (!answer.ok) throw problemOfStatus(answer.status, path);
    const parsed = schema.safeParse(JSON.parse(await textOf(answer)));
    if (parsed.success) return parsed.data;
  } catch (error) {
    await answer.body?.cancel().catch(() => undefined);
    if (error instanceof UpstreamProblem) throw error;
    if (signal.aborted) throw new UpstreamProblem('does not answer in time');
  }
  throw new UpstreamProblem(`answers ${path} with something that is no list of models`);
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_LIST_BYTES) throw new Error('too long for a list of models');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
