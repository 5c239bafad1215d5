/**
 * The story of one transcription: route, weights, audio, slot, model, speech, text. Whatever is acquired on the
 * way is released by scope, however the story ends. Knows nothing of HTTP.
 */
import type { AudioSource } from '../audio/open.ts';
import type { ModelCache } from '../engine/cache.ts';
import type { TranscriptionModel, VoiceActivityModel } from '../engine/native.ts';
import type { Slot } from '../engine/slot.ts';
import { GatewayError } from '../errors.ts';
import { VOICE_ACTIVITY_ID } from '../models/catalogue.ts';
import { speechChunks } from './chunks.ts';
import { type Heading, type Heard, RECOGNIZERS } from './recognizer.ts';
import type { TranscriptionRequest } from './request.ts';
import { languagesOf, type Route, type RouteRequest } from './routing.ts';
import type { Segment } from './segment.ts';

export interface TranscribeDeps {
  /** Chooses among what is installed now. */
  route(request: RouteRequest): Route;
  /** Why the family cannot run here, if it cannot. */
  unavailable(route: Route): GatewayError | null;
  /** Makes sure that the weights (and the voice activity model) are on disk, downloading if it must. */
  ensureWeights(modelId: string, signal: AbortSignal): Promise<void>;
  openAudio(path: string, signal: AbortSignal): Promise<AudioSource>;
  slot: Slot;
  models: ModelCache<TranscriptionModel>;
  voiceActivity: ModelCache<VoiceActivityModel>;
}

export interface Summary {
  /** ISO 639 code of the language most of the speech is in. */
  language: string;
  /** How sure the model was of it; 1 when the client gave it. */
  languageProbability: number;
  durationSec: number;
}

export type TranscriptionEvent =
  | { type: 'started'; route: Route }
  | { type: 'segment'; segment: Segment }
  | { type: 'done'; summary: Summary };

/** Without speech there is nothing to tell the language by: the model family's first one is reported. */
const NO_SPEECH: Heading = { language: 'en', probability: 0 };

/**
 * @param timed whether the caller shows times: sentences and words are then aligned, otherwise only text is made
 * @throws GatewayError for what the client or the operator can mend; `signal.reason` when aborted
 */
export async function* transcribe(
  request: TranscriptionRequest,
  audioPath: string,
  timed: boolean,
  deps: TranscribeDeps,
  signal: AbortSignal,
): AsyncGenerator<TranscriptionEvent> {
  const route = deps.route(request);
  const missing = deps.unavailable(route);
  const recognizer = RECOGNIZERS[route.family];
  if (missing !== null || recognizer === undefined)
    throw missing ?? new Error(`no recognizer: ${route.family}`);
  const language = languageFor(route, request.language);
  await deps.ensureWeights(route.modelId, signal);
  await using audio = await deps.openAudio(audioPath, signal);
  using _slot = deps.slot.take('asr');
  await using vad = await deps.voiceActivity.lease(VOICE_ACTIVITY_ID);
  await using lease = await deps.models.lease(route.modelId);
  yield { type: 'started', route };

  let samples = 0;
  let before: Heading | null = null;
  const spoken = createLanguageTally();
  const number = createSegmentNumbering();
  const onAudio = (count: number) => {
    samples += count;
  };
  for await (const chunk of speechChunks(audio.blocks(), vad.model, { signal, onAudio })) {
    const { prompt, temperature, translate } = request;
    const asked = { language, before, prompt, temperature, translate, timed, signal };
    const { sentences, heading } = await recognizer.recognize(lease.model, chunk, asked);
    before = heading;
    if (sentences.length > 0) spoken.add(heading, chunk.samples.length);
    for (const sentence of sentences) yield { type: 'segment', segment: number(sentence) };
  }
  signal.throwIfAborted();

  const given = language === undefined ? null : { language, probability: 1 };
  const most = spoken.most() ?? before ?? given ?? NO_SPEECH;
  const durationSec = samples / 16_000;
  yield {
    type: 'done',
    summary: { language: most.language, languageProbability: most.probability, durationSec },
  };
}

/** The hint in the model's own terms; a language that an explicitly named model lacks is the client's mistake. */
function languageFor(route: Route, hint: string | undefined): string | undefined {
  if (hint === undefined) return undefined;
  const known = languagesOf({ id: route.modelId, family: route.family });
  if (known.includes(hint)) return hint;
  if (route.reason !== 'requested') return hint === 'yue' ? 'zh' : undefined;
  throw new GatewayError('malformed', `${route.modelId} does not know the language "${hint}"`, {
    param: 'language',
    code: 'unsupported_language',
  });
}

/** Numbers the segments and puts a space where two chunks of a spaced script would run together. */
function createSegmentNumbering(): (heard: Heard) => Segment {
  let id = 0;
  let before = '';
  return (heard) => {
    const runsTogether = /[\p{L}\p{N}\p{P}]$/u.test(before) && /^[\p{L}\p{N}]/u.test(heard.text);
    const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}。！？]/u;
    const space = runsTogether && !unspaced.test(before.slice(-1)) && !unspaced.test(heard.text[0] ?? '');
    before = heard.text;
    return { ...heard, id: id++, text: space ? ` ${heard.text}` : heard.text };
  };
}

function createLanguageTally() {
  const heard = new Map<string, { samples: number; probability: number }>();
  return {
    add({ language, probability }: Heading, samples: number) {
      const so = heard.get(language) ?? { samples: 0, probability: 0 };
      heard.set(language, {
        samples: so.samples + samples,
        probability: Math.max(so.probability, probability),
      });
    },
    most(): Heading | null {
      const [top] = [...heard].sort(([, a], [, b]) => b.samples - a.samples);
      return top === undefined ? null : { language: top[0], probability: top[1].probability };
    },
  };
}
