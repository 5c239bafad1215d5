/** The calls to a gateway during which calls of the system fail, and what may come of each. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../until.ts';
import { wav } from '../../wav.ts';
import type { InjectedGateway } from './injector.ts';
import { FETCHED } from './weights.ts';

export interface World {
  gateway: InjectedGateway;
  /** The folder of weights, uploads, logs and captures. */
  dir: string;
}

export interface Call {
  name: string;
  /** Brings the gateway to where the call begins, with nothing failing. */
  prepare?(world: World): Promise<void>;
  /** Makes the call. Returns its result; a failure that was answered as it should be is `refused` and the code. */
  run(world: World): Promise<string>;
  /** The settings of the gateway. */
  settings?: NodeJS.ProcessEnv;
  /** True where parakeet.cpp starts threads of its own: a process that is refused one of them ends. */
  startsThreads?: boolean;
}

/** Longer than a call takes on a busy machine, so that only one that never ends exceeds it. */
const LIMIT_MS = 60_000;
const tone = wav(
  Float32Array.from({ length: 12_000 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / 16_000)),
);

const post = (
  { gateway }: World,
  path: string,
  body?: string | FormData,
  headers: Record<string, string> = {},
) =>
  fetch(gateway.base + path, {
    ...{ method: 'POST', headers, signal: AbortSignal.timeout(LIMIT_MS) },
    ...(body !== undefined && { body }),
  });

/** Reads an answer: its text, or the code of its envelope. */
async function outcome(response: Response): Promise<string> {
  const text = await response.text();
  if (response.ok) return text;
  const { error } = JSON.parse(text);
  if (typeof error.code !== 'string' || typeof error.message !== 'string')
    throw new Error(`no envelope: ${text}`);
  return `refused: ${error.code}`;
}

async function transcribe(world: World, model: string, fields: Record<string, string> = {}): Promise<string> {
  const form = new FormData();
  for (const [key, value] of Object.entries({ model, language: 'en', ...fields })) form.append(key, value);
  form.append('file', new Blob([Uint8Array.from(tone)]), 'tone.wav');
  const result = await outcome(await post(world, '/v1/audio/transcriptions', form));
  if (fields.stream === undefined || result.startsWith('refused')) return result;
  const events = [...result.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => data);
  const last = JSON.parse(events.findLast((data) => data !== '[DONE]') ?? '{}');
  return last.type === 'error' ? `refused: ${last.error.code}` : result;
}

/** What a request measured, or was called, differs from one to the next. */
const steady = (text: string) =>
  text.replace(
    /"(request_id|processing_seconds|took\w*|id|created\w*|[\w]*(?:_ms|Sec|_sec|seconds))":("[^"]*"|[\d.e-]+)/g,
    '"$1":0',
  );

const json = (name: string, model: string, fields: Record<string, string> = {}): Call => ({
  name,
  run: async (world) => steady(await transcribe(world, model, fields)),
  startsThreads: model === 'european',
});

export async function unloadAll(world: World): Promise<void> {
  await (await post(world, '/admin/api/reset-asr-state')).text();
}

const loading = (model: string): Call => ({
  ...json(`load of ${model}`, model),
  prepare: unloadAll,
});

const WORDS = { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' };

export const CALLS: readonly Call[] = [
  ...['european', 'cjk', 'multilingual-base'].flatMap((model) => [
    loading(model),
    json(`transcription with ${model}`, model),
    json(`words of ${model}`, model, WORDS),
  ]),
  json('stream', 'multilingual-base', { stream: 'true' }),
  {
    name: 'chat',
    run: async (world) =>
      outcome(
        await post(world, '/v1/chat/completions', '{"model":"m","messages":[]}', {
          'Content-Type': 'application/json',
        }),
      ),
  },
  {
    name: 'speech',
    run: async (world) =>
      outcome(
        await post(world, '/v1/audio/speech', '{"model":"tts","input":"x","voice":"y"}', {
          'Content-Type': 'application/json',
        }),
      ),
  },
  {
    ...json('transcription that is captured', 'european'),
    settings: { SVC_OBS_PAYLOAD_ENABLED: '1' },
  },
  {
    name: 'pull',
    async prepare({ dir }) {
      for (const suffix of ['', '.json', '.part', '.part.etag'])
        rmSync(join(dir, `models/${FETCHED}.bin${suffix}`), { force: true });
    },
    async run(world) {
      const asked = await outcome(await post(world, `/admin/api/models/${FETCHED}/pull`));
      if (asked.startsWith('refused')) return asked;
      // The pull goes on without a request, and its failure is shown and logged.
      let page = '';
      const ended = async () => {
        page = await (await fetch(`${world.gateway.base}/admin/fragments/models`)).text();
        return page.includes(`Load ${FETCHED}`) || page.includes('the log says why');
      };
      await until('the pull ends', ended, LIMIT_MS);
      return page.includes('the log says why') ? 'refused: pull' : 'pulled';
    },
  },
];
