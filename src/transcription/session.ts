/**
 * One transcription as a session: opened, iterated, summed up. Opening checks the request and takes what it needs
 * (weights, audio, slot); iterating gives the segments in order and frees everything at its end; the summary tells
 * what was heard. What the session acquires it also releases, however it ends. It knows nothing of HTTP.
 *
 * The audio comes from a source: a file, or samples that arrive while somebody speaks. Every pass over the audio
 * (voice activity, and what else wants to hear all of it) gets the same blocks, each once.
 */
import { SAMPLE_RATE } from '../audio/decoder.ts';
import type { AudioSource } from '../audio/open.ts';
import type { ModelCache } from '../engine/cache.ts';
import type { Hold, Slot } from '../engine/slot.ts';
import type { TranscriptionModel, VoiceActivityModel } from '../engine/types.ts';
import { GatewayError } from '../errors.ts';
import { CATALOGUE, VOICE_ACTIVITY } from '../models/catalogue.ts';
import { joinedChunks, speechChunks } from './chunks.ts';
import { cuttingFor } from './cutting.ts';
import { type ChunkRecognition, onLanes } from './lanes.ts';
import { createLanguageTally } from './language-tally.ts';
import { languageName } from './languages.ts';
import type { Recognizer } from './recognizers/recognizer.ts';
import { recognizerOf } from './recognizers/registry.ts';
import type { TranscriptionRequest } from './request.ts';
import type { Route, RouteRequest } from './routing.ts';
import { createSegmentNumbering, type Segment, type UnnumberedSegment } from './segment.ts';
import { joinSentences } from './sentence-joining.ts';

/** Languages that a refusal lists; `GET /v1/models` has them all. */
const LANGUAGES_NAMED = 5;

export interface TranscriptionDeps {
  /** Chooses among what is installed now. */
  route(request: RouteRequest): Route;
  /** Whether `ensureWeights` has nothing to fetch; cheap. */
  hasWeights(modelId: string): boolean;
  /**
   * Makes sure that the weights (and the voice activity model) are on disk, downloading them where it must.
   * @param onFetching called when the first bytes of a download are here, or something is made of them
   */
  ensureWeights(modelId: string, signal: AbortSignal, onFetching: () => void): Promise<void>;
  slot: Slot;
  models: ModelCache<TranscriptionModel>;
  voiceActivity: ModelCache<VoiceActivityModel>;
}

export interface TranscriptionInput {
  /** Opens the audio from its beginning, before the slot is taken; once more where weights have to be fetched. */
  openAudio(signal: AbortSignal): Promise<AudioSource>;
  requestId: string;
  /** Whether the caller shows times: sentences and words are then aligned, otherwise only text is made. */
  timed: boolean;
  signal: AbortSignal;
  /** Nothing is wrong with the request as far as can be known, but its weights are on their way. May be repeated. */
  onFetching(route: Route): void;
}

export interface Summary {
  /** ISO 639 code of the language most of the speech is in. */
  language: string;
  /** How sure the model was of it, 0 to 1; 1 when the client gave it. */
  languageProbability: number;
  durationSec: number;
  /** Seconds since the slot was taken, until the last segment once there is one. */
  tookSec: number;
  /** Speech that no text could be given for, in seconds. */
  dropped: { start: number; end: number; reason: string }[];
}

export interface TranscriptionSession extends AsyncDisposable {
  readonly route: Route;
  /**
   * The segments in order, each as soon as it is known; to be iterated once. When the iteration is over, however it
   * ended, the slot is free: tell the client of the end after that, or its next request may find the slot held.
   * @throws GatewayError for what the client or the operator can mend; `signal.reason` when aborted
   */
  segments(): AsyncGenerator<Segment, void, undefined>;
  /** What was heard so far; of all the audio once the segments are over. */
  summary(): Summary;
}

/**
 * Resolves when the slot is held and the audio begins.
 * @throws GatewayError for what the client or the operator can mend; `signal.reason` when aborted
 */
export async function openTranscription(
  request: TranscriptionRequest,
  input: TranscriptionInput,
  deps: TranscriptionDeps,
): Promise<TranscriptionSession> {
  const route = deps.route(request);
  const { model } = route;
  if (request.translate && !model.translates) throw cannotTranslate(model.id);
  const language = languageFor(route, request.language);
  if (!route.model.servable) throw backendUnavailable(model.provider);
  const recognizer = await recognizerOf(model.family);
  if (!deps.hasWeights(model.id)) {
    // A download may take minutes: what is wrong with the audio is said before it, not after it.
    await using _checked = await input.openAudio(input.signal);
  }
  await deps.ensureWeights(model.id, input.signal, () => input.onFetching(route));
  const audio = await input.openAudio(input.signal);
  try {
    const hold = deps.slot.take('asr', input.requestId);
    return createSession({ request, route, language, recognizer, audio, hold, input }, deps);
  } catch (error) {
    await audio.close();
    throw error;
  }
}

interface Opened {
  request: TranscriptionRequest;
  route: Route;
  /** The client's hint in the model's own terms; undefined = to be detected. */
  language: string | undefined;
  recognizer: Recognizer;
  audio: AudioSource;
  hold: Hold;
  input: TranscriptionInput;
}

function createSession(opened: Opened, deps: TranscriptionDeps): TranscriptionSession {
  const { request, route, language, recognizer, audio, hold, input } = opened;
  const signal = AbortSignal.any([input.signal, hold.signal]);
  const takenAt = performance.now();
  const spoken = createLanguageTally(language);
  const dropped: Summary['dropped'] = [];
  let samples = 0;
  let tookSec = 0;

  async function release(): Promise<void> {
    tookSec ||= (performance.now() - takenAt) / 1000;
    hold[Symbol.dispose]();
    await audio.close();
  }

  function note({ chunk, sentences, detected, dropped: reason }: ChunkRecognition): void {
    spoken.add(detected, sentences.length > 0 ? chunk.samples.length : 0);
    if (reason !== undefined) dropped.push({ start: chunk.startSec, end: chunk.endSec, reason });
  }

  async function* recognized(): AsyncGenerator<ChunkRecognition, void, undefined> {
    await using vad = await deps.voiceActivity.lease(VOICE_ACTIVITY.id);
    await using lease = await deps.models.lease(route.model.id);
    const stop = new AbortController();
    const stopped = AbortSignal.any([signal, stop.signal]);
    const cut = speechChunks(audio.blocks(), vad.model, {
      signal: stopped,
      onBlock: (block) => {
        samples += block.length;
      },
      ...cuttingFor(request, recognizer.packing),
    });
    // Only a given language cannot change across a pause, and joining drops the silence that times would count.
    const joins = recognizer.packing.joinsAcrossPauses && language !== undefined && !input.timed;
    const asked = { ...toChunkRequest(request), language, timed: input.timed, signal: stopped };
    const heard = onLanes({
      chunks: joins ? joinedChunks(cut, recognizer.packing.maxSec) : cut,
      model: lease.model,
      firstAlone: request.stream,
      stop,
      recognize: (lane, chunk, previous) =>
        recognizer.recognize(lane, chunk, {
          ...asked,
          before: async () => (await previous)?.detected ?? null,
        }),
    });
    for await (const recognition of heard) {
      note(recognition);
      yield recognition;
    }
  }

  async function* unjoined(): AsyncGenerator<UnnumberedSegment, void, undefined> {
    for await (const { sentences } of recognized()) yield* sentences;
  }

  return {
    route,
    async *segments() {
      const numberSegment = createSegmentNumbering();
      const hasSentences =
        input.timed && !(recognizer.cutsSubtitles && request.segmentGranularity === 'subtitle');
      try {
        const parts = hasSentences ? joinSentences(recognized()) : unjoined();
        for await (const part of parts) yield numberSegment(part);
        signal.throwIfAborted();
      } finally {
        await release();
      }
    },
    summary: () => ({
      ...spoken.most(),
      durationSec: samples / SAMPLE_RATE,
      tookSec: tookSec || (performance.now() - takenAt) / 1000,
      dropped,
    }),
    [Symbol.asyncDispose]: release,
  };
}

function cannotTranslate(modelId: string): GatewayError {
  return new GatewayError(
    'unsupported_translate',
    {
      model: modelId,
      others: CATALOGUE.filter((model) => model.translates)
        .map(({ id }) => id)
        .join(', '),
    },
    { param: 'translate' },
  );
}

function backendUnavailable(provider: string): GatewayError {
  return new GatewayError('backend_unavailable', { provider }, { provider });
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

/** The hint in the model's own terms; a language that an explicitly named model lacks is the client's mistake. */
function languageFor({ model, reason }: Route, hint: string | undefined): string | undefined {
  if (hint === undefined || model.languages.includes(hint) || model.languageHint === 'recorded') return hint;
  if (reason !== 'requested') return hint === 'yue' ? 'zh' : undefined;
  throw new GatewayError(
    'unsupported_language',
    { model: model.id, name: languageName(hint), language: hint, known: someOf(model.languages) },
    { param: 'language' },
  );
}

function someOf(languages: readonly string[]): string {
  const named = languages.slice(0, LANGUAGES_NAMED).join(', ');
  const more = languages.length - LANGUAGES_NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}
