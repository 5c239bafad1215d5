/**
 * One transcription as a session, in three steps. Opening checks the request and acquires the weights, the audio and
 * the slot. Iterating gives the segments in order and releases everything at its end. The summary describes the whole.
 * The session releases what it has acquired however it ends, and does not depend on HTTP.
 *
 * The audio comes from a source, which may be a file or samples that arrive while someone speaks. Every pass over the
 * audio, such as voice activity detection, gets the same blocks once each.
 */
import { type Bleed, withoutBleed } from '../audio/bleed.ts';
import { type Channel, SAMPLE_RATE } from '../audio/decoder.ts';
import type { AudioSource } from '../audio/open.ts';
import type { ModelCache } from '../engine/cache.ts';
import type { Hold, Slot } from '../engine/slot.ts';
import type { SpeakerModel, TranscriptionModel, VoiceActivityModel } from '../engine/types.ts';
import { GatewayError, invalidValue } from '../errors.ts';
import { DIARIZATION, VOICE_ACTIVITY } from '../models/catalogue.ts';
import type { Aliases } from '../models/names.ts';
import { onLanesAligned } from './alignment/aligning.ts';
import { compareChannels, mergeChannels } from './channels.ts';
import { spellingsOf } from './keywords.ts';
import { addLanguage, type ChunkRecognition, type LaneWork, onLanes } from './lanes.ts';
import { choicesOf, languageFor, onlyChoice } from './language/choice.ts';
import { createLanguageTally, type LanguageTally } from './language/tally.ts';
import { type Dropped, type Recognizer, recognizerOf, speechWithoutText } from './recognizer.ts';
import type { TranscriptionRequest } from './request.ts';
import { type Route, type RouteRequest, requireAble } from './routing.ts';
import { createSegmentNumbering, type Segment, type UnnumberedSegment } from './segment.ts';
import type { Turn } from './speakers/diarization.ts';
import {
  createSpeakerPass,
  type Reference,
  type SpeakerPass,
  type SpeakerSummary,
  summaryOf,
} from './speakers/session-pass.ts';
import { speechChunks } from './speech/chunks.ts';
import { cuttingFor } from './speech/cutting.ts';
import { withoutVoiceless } from './speech/voiceless-channel.ts';
import { joinSentences } from './text/sentence-joining.ts';

/** Taking it may wait where the caller of the session asked for that. */
export interface SessionSlot extends Pick<Slot, 'isFree'> {
  take(...request: Parameters<Slot['take']>): Hold | Promise<Hold>;
}

/** What a request needs: a model, the voice activity model, and with `speakers` the model that tells them apart. */
export interface NeededWeights {
  modelId: string;
  speakers: boolean;
}

export interface TranscriptionDeps {
  /** The aliases from the settings. */
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
  /** Called with the second of the audio up to which the text is known, each time that more of it is. */
  onTextUntil?: ((sec: number) => void) | undefined;
}

export interface TranscriptionInput {
  /**
   * Opens the audio from its beginning, before the slot is taken. It is called again after a download of weights, and
   * after a wait for the slot. Of audio that is heard by channel, each is opened twice, to be compared and to be heard,
   * one after the other, so one decoder runs at a time.
   */
  openAudio(signal: AbortSignal, channel?: Channel): Promise<AudioSource>;
  requestId: string;
  signal: AbortSignal;
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
  /** The spans of speech, in seconds, that have no text, and why; also audio that is missing, as `damaged`. */
  dropped: Dropped[];
  /** The number of the audio track that was heard; absent where the audio has one. */
  track?: number;
  /** Absent when speakers were not told apart. */
  spoken?: SpeakerSummary;
}

/** A transcription that has ended. */
export interface Transcript {
  route: Route;
  segments: Segment[];
  summary: Summary;
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
  if (!route.model.servable) throw backendUnavailable(model);
  const recognizer = await recognizerOf(model.family);
  const channel = request.channels === null ? undefined : 0;
  const needed = { modelId: model.id, speakers: request.speakers !== null };
  if (!deps.hasWeights(needed)) {
    // A download may take minutes, so faults of the audio are reported before it.
    await using _checked = await input.openAudio(input.signal, channel);
  }
  await deps.ensureWeights(needed, input.signal, () => input.onFetching(route));
  const { audio, hold } = await openWithSlot(input, channel, deps.slot);
  const signal = AbortSignal.any([input.signal, hold.signal]);
  let bleed: Run['bleed'] = null;
  try {
    await requireVoices(input.references ?? [], deps, signal);
    if (request.channels !== null) bleed = await compareChannels(audio, () => input.openAudio(signal, 1));
  } catch (error) {
    hold[Symbol.dispose]();
    await audio.close();
    throw error;
  }
  const spoken = createLanguageTally(language);
  const found = { spoken, dropped: [], samples: 0, pass: null, turns: [] };
  const opened = { request, route, language, languages, recognizer, audio, bleed, hold, input, deps, signal };
  return createSession({ ...opened, ...found });
}

/**
 * The audio is opened first, so that its faults are told before the slot is taken. Where the slot has to be waited for,
 * the audio is closed meanwhile: a decoder may be a process, of which there are few.
 */
async function openWithSlot(
  { openAudio, requestId, signal }: TranscriptionInput,
  channel: Channel | undefined,
  slot: SessionSlot,
): Promise<{ audio: AudioSource; hold: Hold }> {
  const audio = await openAudio(signal, channel);
  const isTaken = !slot.isFree();
  let hold: Hold | null = null;
  try {
    if (isTaken) await audio.close();
    hold = await slot.take('asr', requestId);
    if (!isTaken) return { audio, hold };
    return { audio: await openAudio(AbortSignal.any([signal, hold.signal]), channel), hold };
  } catch (error) {
    hold?.[Symbol.dispose]();
    await audio.close();
    throw error;
  }
}

/** Noise would be a speaker whom every other noise is like. */
async function requireVoices(
  references: readonly Reference[],
  { voiceActivity }: TranscriptionDeps,
  signal: AbortSignal,
): Promise<void> {
  if (references.length === 0) return;
  await using vad = await voiceActivity.lease(VOICE_ACTIVITY.id);
  for (const [i, { samples }] of references.entries()) {
    const blocks = (async function* () {
      yield samples;
    })();
    const speech = speechChunks(blocks, vad.model, { signal, onBlock: () => undefined });
    const { done } = await speech.next();
    await speech.return(undefined);
    if (!done) continue;
    const field = 'known_speaker_references';
    throw invalidValue(`${field}[${i}]`, 'a sound without speech', 'Expected 2 to 10 s of a voice', field);
  }
}

/** A session at work, and what it has found so far. */
interface Run {
  request: TranscriptionRequest;
  route: Route;
  /** The language as the model takes it; undefined when the model has to detect it. */
  language: string | undefined;
  /** The languages that the model may detect. */
  languages: readonly string[];
  recognizer: Recognizer;
  /** It is read already where the channels are heard by themselves. */
  audio: AudioSource;
  /** What each channel holds of the other one; null where all are heard together. */
  bleed: readonly [Bleed, Bleed] | null;
  hold: Hold;
  input: TranscriptionInput;
  deps: TranscriptionDeps;
  /** Aborts when the client leaves, and when the slot is taken away. */
  signal: AbortSignal;
  spoken: LanguageTally;
  dropped: Dropped[];
  /** The samples of the audio so far; of several channels, those of the longest. */
  samples: number;
  /** Null where voices are not told apart. */
  pass: SpeakerPass | null;
  /** Who speaks when, where each speaker has a channel. */
  turns: Turn[];
}

function createSession(run: Run): TranscriptionSession {
  const { request, route, audio, hold, deps } = run;
  const takenAt = performance.now();
  let tookSec = 0;

  async function release(): Promise<void> {
    tookSec ||= (performance.now() - takenAt) / 1000;
    hold[Symbol.dispose]();
    await audio.close();
  }

  return {
    route,
    async *segments() {
      const numberSegment = createSegmentNumbering();
      try {
        await using lease = request.speakers && (await deps.speakers.lease(DIARIZATION.id));
        run.pass = lease && (await speakerPassOf(run, lease.model));
        const unlabeled = unlabeledSegments(run);
        for await (const segment of run.pass?.label(unlabeled) ?? unlabeled) yield numberSegment(segment);
        run.signal.throwIfAborted();
      } finally {
        await release();
      }
    },
    summary: () => ({
      ...run.spoken.most(),
      durationSec: run.samples / SAMPLE_RATE,
      tookSec: tookSec || (performance.now() - takenAt) / 1000,
      dropped: [...run.dropped, ...damaged(audio)].sort((a, b) => a.start - b.start),
      ...(audio.track !== undefined && { track: audio.track }),
      ...(request.channels && { spoken: summaryOf(run.turns) }),
      ...(run.pass && { spoken: run.pass.summary() }),
    }),
    [Symbol.asyncDispose]: release,
  };
}

/** The channels of a file are damaged together, so one of them tells it. */
const damaged = ({ lost = [] }: AudioSource): Dropped[] =>
  lost.map(({ startSec, endSec }) => ({ start: startSec, end: endSec, reason: 'damaged' }));

async function speakerPassOf({ request, input, route, signal }: Run, model: SpeakerModel) {
  if (request.speakers === null) return null;
  const references = input.references ?? [];
  const atOnce = request.stream && route.model.streams;
  return createSpeakerPass(model, { request: request.speakers, references, atOnce, signal });
}

function unlabeledSegments(run: Run): AsyncIterable<UnnumberedSegment> {
  const { channels } = run.request;
  if (channels === null)
    return segmentsIn(
      run,
      recognize(run, (vad, signal) => withoutVoiceless(run.audio, vad, signal)),
    );
  return mergeChannels(channels, (channel) => segmentsOfChannel(run, channel, channels[channel]));
}

async function* segmentsOfChannel(run: Run, channel: Channel, speaker: string) {
  await using source = await run.input.openAudio(run.signal, channel);
  const blocks = run.bleed === null ? source.blocks() : withoutBleed(source.blocks(), run.bleed[channel]);
  async function* recognitions() {
    for await (const recognition of recognize(run, () => blocks)) {
      if (recognition.sentences.length > 0) run.turns.push(...turnsIn(recognition, speaker));
      yield recognition;
    }
  }
  yield* segmentsIn(run, recognitions());
}

function segmentsIn(
  { input, recognizer, request }: Run,
  recognitions: AsyncIterable<ChunkRecognition>,
): AsyncIterable<UnnumberedSegment> {
  const hasSentences =
    input.timed && !(recognizer.cutsSubtitles && request.segmentGranularity === 'subtitle');
  return hasSentences ? joinSentences(recognitions) : unjoined(recognitions);
}

async function* unjoined(recognitions: AsyncIterable<ChunkRecognition>) {
  for await (const { sentences } of recognitions) yield* sentences;
}

/** Cuts the audio into chunks of speech, and recognizes or aligns each of them on the lanes of the model. */
async function* recognize(
  run: Run,
  blocksFor: (vad: VoiceActivityModel, signal: AbortSignal) => AsyncIterable<Float32Array>,
): AsyncGenerator<ChunkRecognition, void, undefined> {
  const { deps, request, input, recognizer, language, languages } = run;
  const { draft = false, leveled, continued } = input;
  let samples = 0;
  await using vad = await deps.voiceActivity.lease(VOICE_ACTIVITY.id);
  await using lease = await deps.models.lease(run.route.model.id);
  const stop = new AbortController();
  const signal = AbortSignal.any([run.signal, stop.signal]);
  const chunks = speechChunks(blocksFor(vad.model, signal), vad.model, {
    signal,
    leveled,
    raisesSoft: recognizer.raisesSoft,
    continued,
    onBlock: (block) => {
      samples += block.length;
      run.samples = Math.max(run.samples, samples);
      return run.pass?.push(block);
    },
    ...cuttingFor(request, recognizer.limits(language), leveled !== false),
  });
  const { text } = request;
  const chunkRequest = {
    ...toChunkRequest(request),
    beams: draft ? 1 : (request.beamSize ?? deps.beamSize),
    draft,
    language,
    languages,
    signal,
    timed: input.timed && text === undefined,
  };
  const work: LaneWork = {
    chunks,
    model: lease.model,
    firstAlone: request.stream,
    stop,
    recognize: (lane, chunk, before) =>
      recognizer.recognize(lane, chunk, { ...chunkRequest, before: () => before }),
  };
  const recognitions =
    text === undefined ? onLanes(work) : onLanesAligned(work, { text, recognizer, ...chunkRequest });
  for await (const recognition of recognitions) {
    noteRecognition(run, recognition);
    yield recognition;
  }
}

function noteRecognition(run: Run, recognition: ChunkRecognition): void {
  run.spoken = addLanguage(run.spoken, recognition);
  if (recognition.sentences.length > 0) run.pass?.noteSpeech(recognition.chunk.speech);
  run.dropped.push(...speechWithoutText(recognition));
  const last = recognition.chunk.speech.at(-1);
  if (last) run.deps.onTextUntil?.(last.endSec);
}

/** Where the channel of one speaker has speech, someone speaks. */
const turnsIn = ({ chunk }: ChunkRecognition, speaker: string): Turn[] =>
  chunk.speech.map(({ startSec, endSec }) => ({ speaker, start: startSec, end: endSec }));

const backendUnavailable = ({ provider }: Route['model']) =>
  new GatewayError('backend_unavailable', { provider }, { provider });

function toChunkRequest({ prompt, keywords, temperature, translate, ...rest }: TranscriptionRequest) {
  const { segmentGranularity: granularity, taskType } = rest;
  // Whisper takes the prompt for earlier speech, so a list of words in it makes their spelling likely.
  const led = [prompt, keywords.join(', ')].filter((part) => part !== '').join(' ');
  return { prompt: led, keywords: spellingsOf(keywords), temperature, translate, granularity, taskType };
}
