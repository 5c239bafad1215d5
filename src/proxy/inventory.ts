/**
 * Lists the models that the upstreams can serve right now (contract 4.2). Both upstreams are asked at the same time,
 * within one short limit, and their answers are kept for two seconds, so that requests in a row do not all wait for a
 * dead upstream.
 */
import { z } from 'zod';
import type { Config } from '../config.ts';
import { withoutTrailingSlashes } from '../url-base.ts';

export interface UpstreamModel {
  id: string;
  category: 'tts' | 'llm';
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
  return answer?.ok ? [{ id: modelId, category: 'tts', created: undefined, ownedBy: undefined }] : [];
}

const id = z.string().min(1).max(256);
const optional = <T>(schema: z.ZodType<T>) => schema.optional().catch(undefined);
/** Daemons differ in the members that they leave null, so an entry needs only a valid name. */
const openaiEntry = z.object({ id, created: optional(z.int()), owned_by: optional(z.string()) });
const openaiList = z.object({ data: z.array(z.unknown()).nullable() });
/** https://github.com/ollama/ollama/blob/main/docs/api.md#list-local-models */
const ollamaEntry = z.object({ name: id, modified_at: optional(z.string()) });
const ollamaList = z.object({ models: z.array(z.unknown()) });

/** Keeps the entries that fit the schema, in their order. */
const valid = <T>(entries: readonly unknown[], schema: z.ZodType<T>): T[] =>
  entries.slice(0, MAX_MODELS).flatMap((entry) => schema.safeParse(entry).data ?? []);

async function probeChat(url: string): Promise<UpstreamModel[]> {
  const signal = AbortSignal.timeout(PROBE_LIMIT_MS);
  const openai = openaiList.safeParse(await getJson(url, PROBES.openaiModels, signal));
  if (openai.success) {
    const models = valid(openai.data.data ?? [], openaiEntry);
    return models.map(({ id, created, owned_by }) => ({ id, category: 'llm', created, ownedBy: owned_by }));
  }
  const ollama = ollamaList.safeParse(await getJson(url, PROBES.ollamaModels, signal));
  return valid(ollama.data?.models ?? [], ollamaEntry).map(({ name, modified_at }) => {
    const modifiedMs = Date.parse(modified_at ?? '');
    const created = Number.isNaN(modifiedMs) ? undefined : Math.floor(modifiedMs / 1000);
    return { id: name, category: 'llm', created, ownedBy: undefined };
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
