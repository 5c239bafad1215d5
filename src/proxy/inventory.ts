/**
 * Lists the models that the upstreams can serve right now (contract 4.2). Both upstreams are asked at the same time,
 * within one short limit, and their answers are kept for two seconds, so that requests in a row do not all wait for a
 * dead upstream.
 */
import { z } from 'zod';
import { withoutTrailingSlashes } from '../address.ts';
import type { Config } from '../config/config.ts';

export interface UpstreamModel {
  id: string;
  category: 'tts' | 'llm';
  /** True for a model of the chat daemon that makes vectors of texts and does not chat. */
  embeds: boolean;
  /** Unix seconds, if the upstream gives them. */
  created: number | undefined;
  ownedBy: string | undefined;
}

/** Never rejects: an upstream that does not answer has no models. */
export type Inventory = () => Promise<UpstreamModel[]>;

const PROBE_LIMIT_MS = 1000;
const KEPT_FOR_MS = 2000;
/** Far more than any real list, so a longer answer is not a list. */
const MAX_LIST_BYTES = 4 * 1024 * 1024;
const MAX_MODELS = 1000;

export function createInventory(
  config: Pick<Config, 'tts' | 'llm'>,
  now = () => performance.now(),
): Inventory {
  let kept: { answer: Promise<UpstreamModel[]>; until: number } | null = null;
  const ask = async () => (await Promise.all([probeSpeech(config.tts), probeChat(config.llm.url)])).flat();
  return () => {
    if (kept === null || now() >= kept.until) {
      const fresh = { answer: ask(), until: Number.POSITIVE_INFINITY };
      kept = fresh;
      void fresh.answer.then(() => {
        fresh.until = now() + KEPT_FOR_MS;
      });
    }
    return kept.answer;
  };
}

/** The paths that tell what an upstream can serve. `voxgate doctor` asks them, too. */
export const PROBES = { speech: '/health', openaiModels: '/v1/models', ollamaModels: '/api/tags' } as const;

async function probeSpeech({ url, modelId }: Config['tts']): Promise<UpstreamModel[]> {
  const answer = await get(url, PROBES.speech, AbortSignal.timeout(PROBE_LIMIT_MS));
  await answer?.body?.cancel().catch(() => undefined);
  return answer?.ok
    ? [{ id: modelId, category: 'tts', embeds: false, created: undefined, ownedBy: undefined }]
    : [];
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

/** A daemon of Ollama has both lists, and only its own tells what a model is for. */
async function probeChat(url: string): Promise<UpstreamModel[]> {
  const signal = AbortSignal.timeout(PROBE_LIMIT_MS);
  const lists = [PROBES.openaiModels, PROBES.ollamaModels].map((path) => getJson(url, path, signal));
  const [openai, ollama] = await Promise.all(lists);
  const tags = valid(ollamaList.safeParse(ollama).data?.models ?? [], ollamaEntry);
  const listed = openaiList.safeParse(openai);
  if (listed.success) {
    const tagOf = new Map(tags.map((tag) => [tag.name, tag]));
    return valid(listed.data.data ?? [], openaiEntry).map(({ id, created, owned_by, capabilities, type }) => {
      const tag = tagOf.get(id);
      const marks = { capabilities: capabilities ?? tag?.capabilities, type, family: tag?.details?.family };
      return { id, category: 'llm', embeds: isEmbedding({ name: id, ...marks }), created, ownedBy: owned_by };
    });
  }
  return tags.map(({ name, modified_at, capabilities, details }) => {
    const modifiedMs = Date.parse(modified_at ?? '');
    const created = Number.isNaN(modifiedMs) ? undefined : Math.floor(modifiedMs / 1000);
    const embeds = isEmbedding({ name, capabilities, family: details?.family });
    return { id: name, category: 'llm', embeds, created, ownedBy: undefined };
  });
}

async function get(base: string, path: string, signal: AbortSignal): Promise<Response | null> {
  try {
    return await fetch(withoutTrailingSlashes(base) + path, { signal });
  } catch {
    return null;
  }
}

/** The parsed answer; null unless it is JSON of at most `MAX_LIST_BYTES` that arrives in time. */
async function getJson(base: string, path: string, signal: AbortSignal): Promise<unknown> {
  const answer = await get(base, path, signal);
  if (answer === null || answer.body === null) return null;
  try {
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body) {
      bytes += chunk.byteLength;
      if (bytes > MAX_LIST_BYTES) throw new Error('too long for a list of models');
      chunks.push(chunk);
    }
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
  } catch {
    await answer.body.cancel().catch(() => undefined);
    return null;
  }
}
