/**
 * One transcription as a session, in three steps. Opening checks the request and acquires the weights, the audio and
 * the slot. Iterating gives the segments in order and releases everything at its end. The summary describes the whole.
 * The session releases what it has acquired however it ends, and does not depend on HTTP.
 *
 * The audio comes from a source, which may be a file or samples that arrive while someone speaks. Every pass over the
 * audio, such as voice activity detection, gets the same blocks once each.
 */
import { type Channel, SAMPLE_RATE } from '../audio/decoder.ts';
import type { AudioSource } from '../audio/open.ts';
import type { ModelCache } from '../engine/cache.ts';
import type { Hold } from '../engine/slot.ts';
import type { SpeakerModel, TranscriptionModel, VoiceActivityModel } from '../engine/types.ts';
import { GatewayError } from '../errors.ts';
import { PROVIDERS, VOICE_ACTIVITY } from '../models/catalogue.ts';
import type { Aliases } from '../models/names.ts';
import { requireAble } from './abilities.ts';
import { onLanesAligned } from './alignment/aligning.ts';
import { mergeChannels } from './channels.ts';
import { spellingsOf } from './keywords.ts';
import { addLanguage, type ChunkRecognition, type LaneWork, onLanes } from './lanes.ts';
import { choicesOf, languageFor, onlyChoice } from './language/choice.ts';
import { createLanguageTally } from './language/tally.ts';
import { type OpeningInput, openWithSlot, type SessionSlot } from './opening.ts';
import { type Recognizer, recognizerOf, speechWithoutText } from './recognizer.ts';
import type { SpeakerRequest, TranscriptionRequest } from './request.ts';
import type { Route, RouteRequest } from './routing.ts';
import { createSegmentNumbering, type Segment, type UnnumberedSegment } from './segment.ts';
import type { Turn } from './speakers/diarization.ts';
import {
  openSpeakerPass,
  type Reference,
  type SpeakerPass,
  type SpeakerSummary,
  summaryOf,
} from './speakers/session-pass.ts';
import { speechChunks } from './speech/chunks.ts';
import { cuttingFor } from './speech/cutting.ts';
import { joinSentences } from './text/sentence-joining.ts';

/** What a request needs: a model, the voice activity model, and with `speakers` the model that tells them apart. */
export interface NeededWeights {
  modelId: string;
  speakers: boolean;
}

export interface TranscriptionDeps {
  /** The names of the settings, each of which does what it stands for. */
  aliases: Aliases;
  /** Chooses a model, given the models that are installed now. */
  route(request: RouteRequest): Route;
  /** True when `ensureWeights` has nothing to download. The check is cheap. */
  hasWeights(needed: NeededWeights): boolean;
  /**
   * Makes sure that the weights are on disk, and downloads them if needed.
   * @param onFetching called when the first bytes of a download have arrived, and while the weights are made from them
   */
  ensureWeights(needed: NeededWeights, signal: AbortSignal, onFetching: () => void): Promise<void>;
  slot: SessionSlot;
  /** The beams of requests that do not say how many; 1..8. */
  beamSize: number;
  models: ModelCache<TranscriptionModel>;
  voiceActivity: Pick<ModelCache<VoiceActivityModel>, 'lease'>;
  speakers: ModelCache<SpeakerModel>;
}

export interface TranscriptionInput extends OpeningInput {
  /** The voices of the request's known speakers. */
  references?: readonly Reference[];
  /** True when the caller shows times. Words and sentences are then aligned; otherwise only the text matters. */
  timed: boolean;
  /** True for a text that is computed anew in a moment: it is greedy, and nothing is decoded again. */
  draft?: boolean;
  /** False where `voiceActivity` tells what was found before, in the audio as it is. */
  leveled?: boolean;
  /** True where the audio begins with the rest of speech that was cut. */
  continued?: boolean | undefined;
  /** Called once the model is chosen, before anything of the request can fail for that model. */
  onRoute?(route: Route): void;
  /** Called, possibly several times, while the weights of a request without known faults are being downloaded. */
  onFetching(route: Route): void;
}

export interface Summary {
  /** ISO 639 code of the language that most of the speech is in. */
  language: string;
  /** The model's probability for the language, 0 to 1; 1 when the client gave the language. */
  languageProbability: number;
  durationSec: number;
  /** Seconds from taking the slot until its release, or until now while the session holds it. */
  tookSec: number;
  /** The spans of speech, in seconds, that have no text, and why. */
  dropped: { start: number; end: number; reason: string }[];
  /** Absent when speakers were not told apart. */
  spoken?: SpeakerSummary;
}

export interface TranscriptionSession extends AsyncDisposable {
  readonly route: Route;
  /**
   * The segments in order, each as soon as it is known. They can be iterated once. When the iteration has ended, for
   * any reason, the slot is free. Answer the client only then, or its next request may find the slot held.
   * @throws GatewayError for failures that the client or the operator can correct; `signal.reason` after an abort
   */
  segments(): AsyncGenerator<Segment, void, undefined>;
  /** The summary of the audio so far; after the last segment it covers all of the audio. */
  summary(): Summary;
}

/**
 * Opens a session. It resolves when the session holds the slot and the audio is open.
 * @throws GatewayError for failures that the client or the operator can correct; `signal.reason` after an abort
 */
export async function openTranscription(
  request: TranscriptionRequest,
  input: TranscriptionInput,
  deps: TranscriptionDeps,
): Promise<TranscriptionSession> {
  const route = deps.route(request);
  const { model } = route;
  input.onRoute?.(route);
  requireAble(model, request);
  const languages = choicesOf(model, request.languages);
  const language = languageFor(route, request.language ?? route.language) ?? onlyChoice(model, languages);
  if (!route.model.servable) throw backendUnavailable(model.provider);
  const recognizer = await recognizerOf(model.family);
  const channel = request.channels === null ? undefined : 0;
  const needed = { modelId: model.id, speakers: request.speakers !== null };
  if (!deps.hasWeights(needed)) {
    // A download may take minutes, so faults of the audio are reported before it.
    await using _checked = await input.openAudio(input.signal, channel);
  }
  await deps.ensureWeights(needed, input.signal, () => input.onFetching(route));
  const { audio, hold } = await openWithSlot(input, channel, deps.slot);
  return createSession({ request, route, language, languages, recognizer, audio, hold, input }, deps);
}

interface Opened {
  request: TranscriptionRequest;
  route: Route;
  /** The language as the model takes it; undefined when the model has to detect it. */
  language: string | undefined;
  /** The languages that the model may detect. */
  languages: readonly string[];
  recognizer: Recognizer;
  audio: AudioSource;
  hold: Hold;
  input: TranscriptionInput;
}

function createSession(opened: Opened, deps: TranscriptionDeps): TranscriptionSession {
  const { request, route, language, languages, recognizer, audio, hold, input } = opened;
  const signal = AbortSignal.any([input.signal, hold.signal]);
  const takenAt = performance.now();
  let spoken = createLanguageTally(language);
  const dropped: Summary['dropped'] = [];
  let samples = 0;
  let tookSec = 0;
  let pass: SpeakerPass | null = null;
  const turns: Turn[] = [];

  async function release(): Promise<void> {
    tookSec ||= (performance.now() - takenAt) / 1000;
    hold[Symbol.dispose]();
    await audio.close();
  }

  function note(recognition: ChunkRecognition): void {
    spoken = addLanguage(spoken, recognition);
    for (const { startSec, endSec, reason } of speechWithoutText(recognition))
      dropped.push({ start: startSec, end: endSec, reason });
  }

  async function* recognized(source: AudioSource): AsyncGenerator<ChunkRecognition, void, undefined> {
    let heardSamples = 0;
    await using vad = await deps.voiceActivity.lease(VOICE_ACTIVITY.id);
    await using lease = await deps.models.lease(route.model.id);
    const stop = new AbortController();
    const stopped = AbortSignal.any([signal, stop.signal]);
    const { draft = false, leveled, continued } = input;
    const chunks = speechChunks(source.blocks(), vad.model, {
      signal: stopped,
      leveled,
      continued,
      onBlock: (block) => {
        heardSamples += block.length;
        samples = Math.max(samples, heardSamples);
        return pass?.push(block);
      },
      ...cuttingFor(request, recognizer.limits(language)),
    });
    const beams = draft ? 1 : (request.beamSize ?? deps.beamSize);
    const asked = {
      ...toChunkRequest(request),
      ...{ beams, draft, language, languages, signal: stopped },
      timed: input.timed && request.text === undefined,
    };
    const work: LaneWork = {
      chunks,
      model: lease.model,
      firstAlone: request.stream,
      stop,
      recognize: (lane, chunk, before) =>
        recognizer.recognize(lane, chunk, { ...asked, before: () => before }),
    };
    const { text } = request;
    const heard = text === undefined ? onLanes(work) : onLanesAligned(work, { text, recognizer, ...asked });
    for await (const recognition of heard) {
      note(recognition);
      yield recognition;
    }
  }

  async function* unjoined(heard: AsyncIterable<ChunkRecognition>) {
    for await (const { sentences } of heard) yield* sentences;
  }

  function segmentsIn(heard: AsyncIterable<ChunkRecognition>): AsyncIterable<UnnumberedSegment> {
    const hasSentences =
      input.timed && !(recognizer.cutsSubtitles && request.segmentGranularity === 'subtitle');
    return hasSentences ? joinSentences(heard) : unjoined(heard);
  }

  async function* segmentsOfChannel(channel: Channel, speaker: string) {
    await using source = channel === 0 ? audio : await input.openAudio(signal, channel);
    async function* heard() {
      for await (const recognition of recognized(source)) {
        if (recognition.sentences.length > 0) turns.push(...turnsIn(recognition, speaker));
        yield recognition;
      }
    }
    yield* segmentsIn(heard());
  }

  const toPass = (asked: SpeakerRequest) => ({
    request: asked,
    references: input.references ?? [],
    atOnce: request.stream && route.model.streams,
    signal,
  });

  return {
    route,
    async *segments() {
      const numberSegment = createSegmentNumbering();
      const { channels } = request;
      try {
        await using speakers =
          request.speakers && (await openSpeakerPass(deps.speakers, toPass(request.speakers)));
        pass = speakers;
        const parts =
          channels === null
            ? segmentsIn(recognized(audio))
            : mergeChannels(channels, (channel) => segmentsOfChannel(channel, channels[channel]));
        for await (const part of pass?.label(parts) ?? parts) yield numberSegment(part);
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
      ...(request.channels && { spoken: summaryOf(turns) }),
      ...(pass && { spoken: pass.summary() }),
    }),
    [Symbol.asyncDispose]: release,
  };
}

/** Where the channel of one speaker has speech, someone speaks. */
const turnsIn = ({ chunk }: ChunkRecognition, speaker: string): Turn[] =>
  chunk.speech.map(({ startSec, endSec }) => ({ speaker, start: startSec, end: endSec }));

function backendUnavailable(provider: string): GatewayError {
  const known = PROVIDERS.includes(provider) ? { provider } : {};
  return new GatewayError('backend_unavailable', { provider }, known);
}

function toChunkRequest({ prompt, keywords, temperature, translate, ...rest }: TranscriptionRequest) {
  const { segmentGranularity: granularity, taskType } = rest;
  // Whisper takes the prompt for earlier speech, so a list of words in it makes their spelling likely.
  const led = [prompt, keywords.join(', ')].filter((part) => part !== '').join(' ');
  return { prompt: led, keywords: spellingsOf(keywords), temperature, translate, granularity, taskType };
}
