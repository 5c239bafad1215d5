/**
 * The story of one transcription: route, weights, audio, slot, model, speech, text. Whatever is acquired on the
 * way is released by scope, however the story ends. Knows nothing of HTTP.
 */
import { SAMPLE_RATE } from '../audio/decoder.ts';
import type { AudioSource } from '../audio/open.ts';
import type { ModelCache } from '../engine/cache.ts';
import type { Slot } from '../engine/slot.ts';
import type { TranscriptionModel, VoiceActivityModel } from '../engine/types.ts';
import { GatewayError } from '../errors.ts';
import { VOICE_ACTIVITY_ID } from '../models/catalogue.ts';
import { type Chunk, DEFAULT_LIMITS, joinedChunks, speechChunks } from './chunks.ts';
import { onLanes } from './lanes.ts';
import { type DetectedLanguage, RECOGNIZERS, type UnnumberedSegment } from './recognizers/recognizer.ts';
import type { TranscriptionRequest } from './request.ts';
import { languagesOf, type Route, type RouteRequest } from './routing.ts';
import type { Segment } from './segment.ts';
import { DEFAULT_SEGMENTER, type SegmenterOptions, WINDOW_SEC } from './voice-activity.ts';

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
  /** How long the slot was held for it. */
  tookSec: number;
  /** Speech that no text could be given for, in seconds. */
  dropped: { start: number; end: number; reason: string }[];
}

export type TranscriptionEvent =
  | { type: 'started'; route: Route }
  | { type: 'segment'; segment: Segment }
  | { type: 'done'; summary: Summary };

/** How far below the threshold of its beginning speech may fall and still go on. */
const HYSTERESIS = 0.15;
/** Without speech there is nothing to tell the language by: the model family's first one is reported. */
const NO_SPEECH: DetectedLanguage = { language: 'en', probability: 0 };

export interface TranscribeInput {
  audioPath: string;
  requestId: string;
  /** Whether the caller shows times: sentences and words are then aligned, otherwise only text is made. */
  timed: boolean;
  signal: AbortSignal;
}

/**
 * The slot is free again when the iteration is over, not when `done` is given: tell the client of the end after
 * that, or its next request may still find the slot held.
 * @throws GatewayError for what the client or the operator can mend; `signal.reason` when aborted
 */
export async function* transcribe(
  request: TranscriptionRequest,
  { audioPath, requestId, timed, signal: caller }: TranscribeInput,
  deps: TranscribeDeps,
): AsyncGenerator<TranscriptionEvent> {
  const route = deps.route(request);
  if (request.translate && route.family !== 'multilingual') throw cannotTranslate(route);
  const language = languageFor(route, request.language);
  const missing = deps.unavailable(route);
  if (missing !== null) throw missing;
  const recognizer = RECOGNIZERS[route.family];
  await deps.ensureWeights(route.modelId, caller);
  await using audio = await deps.openAudio(audioPath, caller);
  using held = deps.slot.take('asr', requestId);
  const takenAt = performance.now();
  const signal = AbortSignal.any([caller, held.signal]);
  yield { type: 'started', route };
  await using vad = await deps.voiceActivity.lease(VOICE_ACTIVITY_ID);
  await using lease = await deps.models.lease(route.modelId);

  let samples = 0;
  let before: DetectedLanguage | null = null;
  const dropped: Summary['dropped'] = [];
  const spoken = createLanguageTally();
  const number = createSegmentNumbering();
  const onAudio = (count: number) => {
    samples += count;
  };
  const stop = new AbortController();
  const stopped = AbortSignal.any([signal, stop.signal]);
  const cut = speechChunks(audio.blocks(), vad.model, {
    signal: stopped,
    onAudio,
    ...cuttingFor(request, route),
  });
  // Whose language is not known may speak another one after a pause, and whoever wants times wants the real ones.
  const joins = route.family === 'multilingual' && language !== undefined && !timed;
  const chunks = joins ? joinedChunks(cut, PACKED_SEC) : cut;
  const asked = { ...toChunkRequest(request), language, timed, signal: stopped };
  const heard = onLanes({
    chunks,
    model: lease.model,
    firstAlone: request.stream,
    stop,
    recognize: (lane, chunk, previous) =>
      recognizer.recognize(lane, chunk, { ...asked, before: async () => (await previous)?.heading ?? null }),
  });
  for await (const { chunk, sentences, heading, dropped: reason } of heard) {
    before = heading;
    if (sentences.length > 0) spoken.add(heading, chunk.samples.length);
    if (reason !== undefined) dropped.push({ ...extent(chunk), reason });
    for (const sentence of sentences) yield { type: 'segment', segment: number(sentence) };
  }
  signal.throwIfAborted();

  const given = language === undefined ? null : { language, probability: 1 };
  const most = spoken.most() ?? before ?? given ?? NO_SPEECH;
  yield {
    type: 'done',
    summary: {
      language: most.language,
      languageProbability: most.probability,
      durationSec: samples / SAMPLE_RATE,
      tookSec: (performance.now() - takenAt) / 1000,
      dropped,
    },
  };
}

function cannotTranslate(route: Route): GatewayError {
  return new GatewayError('malformed', `${route.modelId} does not translate; a multilingual model does`, {
    param: 'translate',
    code: 'unsupported_translate',
  });
}

/** A stream is cut finer, so that the first words come soon and the rest without long waits. */
const STREAM_MAX_SEC = 14;
/**
 * Whisper computes as many positions as a chunk needs, each attending to all of them: short chunks are packed up to
 * this length, which took the least time a second of speech; docs/performance.md has the figures.
 */
const PACKED_SEC = 12;

/** What the client tuned, over the gateway's own values. */
function cuttingFor({ voiceActivity, stream }: TranscriptionRequest, { family }: Route) {
  const { threshold, prefixPaddingMs, silenceDurationMs } = voiceActivity;
  const windows = (ms: number) => Math.max(1, Math.round(ms / 1000 / WINDOW_SEC));
  const segmenter: SegmenterOptions = {
    ...DEFAULT_SEGMENTER,
    ...(stream && { maxSpeech: windows(STREAM_MAX_SEC * 1000) }),
    ...(threshold !== undefined && { threshold, endThreshold: Math.max(0.01, threshold - HYSTERESIS) }),
    ...(prefixPaddingMs !== undefined && { padding: windows(prefixPaddingMs) }),
    ...(silenceDurationMs !== undefined && { minSilence: windows(silenceDurationMs) }),
  };
  const maxSec = family === 'multilingual' ? PACKED_SEC : stream ? STREAM_MAX_SEC : DEFAULT_LIMITS.maxSec;
  return { segmenter, limits: { ...DEFAULT_LIMITS, maxSec } };
}

function toChunkRequest({
  prompt,
  keywords,
  languages,
  temperature,
  translate,
  ...rest
}: TranscriptionRequest) {
  const { segmentGranularity: granularity, taskType } = rest;
  // A decoder is led by what seems to have been said before: a list of words makes their spelling likely.
  const led = [prompt, keywords.join(', ')].filter((part) => part !== '').join(' ');
  return { prompt: led, languages, temperature, translate, granularity, taskType };
}

function extent({ startSec, endSec }: Chunk) {
  return { start: startSec, end: endSec };
}

/** The hint in the model's own terms; a language that an explicitly named model lacks is the client's mistake. */
function languageFor(route: Route, hint: string | undefined): string | undefined {
  if (hint === undefined) return undefined;
  const known = languagesOf({ id: route.modelId, family: route.family });
  if (known.includes(hint) || route.family === 'european') return hint; // there it is only recorded
  if (route.reason !== 'requested') return hint === 'yue' ? 'zh' : undefined;
  throw new GatewayError('malformed', `${route.modelId} does not know the language "${hint}"`, {
    param: 'language',
    code: 'unsupported_language',
  });
}

/** Numbers the segments and puts a space where two chunks of a spaced script would run together. */
function createSegmentNumbering(): (heard: UnnumberedSegment) => Segment {
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
    add({ language, probability }: DetectedLanguage, samples: number) {
      const so = heard.get(language) ?? { samples: 0, probability: 0 };
      heard.set(language, {
        samples: so.samples + samples,
        probability: Math.max(so.probability, probability),
      });
    },
    most(): DetectedLanguage | null {
      const [top] = [...heard].sort(([, a], [, b]) => b.samples - a.samples);
      return top === undefined ? null : { language: top[0], probability: top[1].probability };
    },
  };
}
