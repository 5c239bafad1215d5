/**
 * A live session: samples come in, utterances and their texts go out. It holds the slot only while it computes, and
 * keeps only the audio of the current utterance and of those that wait for their texts.
 */
import { setMaxListeners } from 'node:events';
import { onAbort } from '../../abort.ts';
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { VoiceActivityModel } from '../../engine/types.ts';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import type { SpeakerRequest, TranscriptionRequest } from '../request.ts';
import type { SpokenSegment } from '../segment.ts';
import { PADDING } from '../speech/chunks.ts';
import { cuttingFor } from '../speech/cutting.ts';
import { WINDOW_SAMPLES, WINDOW_SEC, windowsIn } from '../speech/voice-activity.ts';
import { newestAtATime, warm } from './excerpt-transcription.ts';
import { createLiveAudio, type Excerpt, type LiveAudio } from './live-audio.ts';
import { createLiveSpeakers } from './live-speakers.ts';
import type { Delay } from './stable-text.ts';
import {
  ASKED_AFTER,
  type Eagerness,
  HEARD_WINDOWS,
  PATIENCE,
  type TurnDetection,
} from './turn-detection.ts';
import { Utterance, type UtteranceDeps, type UtteranceOutcome } from './utterance.ts';
import {
  createUtteranceDetector,
  type UtteranceDetector,
  type UtteranceEvent,
} from './utterance-detection.ts';

export interface LiveSettings {
  /** How each utterance is heard. Its `voiceActivity` has no padding: silence is trimmed as that of files. */
  request: TranscriptionRequest;
  /**
   * The silence before the speech that belongs to an utterance, and how soon a pause ends it where a model tells
   * whether it is complete; without `eagerness` the silence of the request does. Null when the client says where
   * utterances end.
   */
  turns: { prefixPaddingMs: number; eagerness?: Eagerness } | null;
  delay: Delay;
  /** Absent if speakers are not told apart. The request's own speaker fields are ignored. */
  speakers?: SpeakerRequest;
}

/** Times are ms of the audio of the session. */
export type LiveEvent =
  | { type: 'started'; id: string; startMs: number }
  | { type: 'stopped'; id: string; endMs: number }
  /** What had started is heard no further, and never committed. */
  | { type: 'dropped'; id: string }
  | { type: 'committed'; id: string; previousId: string | null }
  | { type: 'delta'; id: string; text: string }
  /**
   * What one speaker says in the utterance, before it is completed. Its parts are numbered over the whole session, and
   * their times are seconds of its audio.
   */
  | { type: 'segment'; id: string; part: SpokenSegment }
  /** The speakers of the utterance could not be identified; its text follows. */
  | { type: 'unlabeled'; id: string; error: unknown }
  | { type: 'completed'; id: string; audioSec: number; tookMs: number; outcome: UtteranceOutcome }
  | { type: 'failed'; id: string; audioSec: number; tookMs: number; error: unknown };

export interface LiveDeps extends UtteranceDeps {
  /** A voice activity model of its own, because it remembers what it has heard. */
  loadVoiceActivity(signal: AbortSignal): Promise<VoiceActivityModel>;
  turnDetection: TurnDetection;
  limits: Pick<Budgets['live'], 'utteranceMs' | 'pendingMs'>;
  newId(): string;
  emit(event: LiveEvent): void;
  /** Whether a turn that ends now is answered. The slot then stays held until the event `completed` has its effect. */
  isAnswered?(): boolean;
}

/** Windows of silence that stay before speech in a buffer which the client commits: one second. */
const KEPT_SILENCE = windowsIn(1000);
/** The least audio that a client can commit, as OpenAI's. */
export const LEAST_COMMIT_SEC = 0.1;

/** Opens a session over a voice activity model of its own. */
export async function openLiveSession(
  first: LiveSettings,
  deps: LiveDeps,
  signal: AbortSignal,
): Promise<LiveSession> {
  return new LiveSession(first, await deps.loadVoiceActivity(signal), deps, signal);
}

/** An utterance that goes on, and what was decided when it began. */
interface OpenUtterance {
  utterance: Utterance;
  /** The window from which the client has heard that it goes on. */
  from: number;
  /** How its speakers are told apart. */
  speakers: SpeakerRequest | undefined;
  /** Whether it goes on with speech that was cut. */
  isContinued: boolean;
}

/** Finds the utterances in the audio: where one begins, what it hears, and where it ends. */
export class LiveSession implements AsyncDisposable {
  readonly #vad: VoiceActivityModel;
  readonly #audio: LiveAudio;
  readonly #texts: Texts;
  readonly #deps: LiveDeps;
  readonly #ended = new AbortController();
  /** Aborts at the end of the session. */
  readonly #signal = this.#ended.signal;
  readonly #leaving: Disposable;
  #settings: LiveSettings;
  #detector: UtteranceDetector;
  #open: OpenUtterance | null = null;
  /** The first window that is in no utterance yet. */
  #bufferStart = 0;
  /** The samples that the client sent and that are in no window, less those of silence that were filled in. */
  #unplaced = 0;
  #previousId: string | null = null;
  /** Loads the models that the settings need. */
  readonly #prepare = newestAtATime(async (settings: LiveSettings): Promise<void> => {
    if (this.#signal.aborted) return;
    const { transcription, turnDetection } = this.#deps;
    const turnsReady = patienceOf(settings) === null ? undefined : turnDetection.warm();
    await Promise.all([warm(settings.request, transcription), turnsReady]);
  });

  constructor(first: LiveSettings, vad: VoiceActivityModel, deps: LiveDeps, signal: AbortSignal) {
    this.#vad = vad;
    this.#deps = deps;
    this.#audio = createLiveAudio(vad);
    setMaxListeners(0, this.#signal); // each utterance that waits for its text has one
    this.#leaving = onAbort(signal, () => this.#ended.abort(signal.reason));
    this.#texts = createTexts(deps, this.#signal);
    this.#settings = first;
    this.#detector = detectorFor(first, 0);
    this.#prepare(first);
  }

  /** Applies from now on. A change of turn detection drops the utterance in progress. */
  configure(next: LiveSettings): void {
    const tuning = ({ turns, request }: LiveSettings) => JSON.stringify([turns, request.voiceActivity]);
    const isOther = tuning(next) !== tuning(this.#settings);
    this.#settings = next;
    this.#prepare(next);
    if (isOther) this.#reset();
  }

  /**
   * Takes 16 kHz mono. It resolves when the audio is searched for speech, which takes longer while too much waits for
   * its text. Its calls must not overlap with each other, with `commit` or with `clear`.
   * @throws GatewayError `input_audio_buffer_full` when the client ends no utterance
   */
  async append(samples: Float32Array): Promise<void> {
    const { utteranceMs, pendingMs } = this.#deps.limits;
    for (let at = 0; at < samples.length; at += SAMPLE_RATE) {
      while (this.#texts.pendingSec() * 1000 > pendingMs) await this.#texts.nextSettled();
      const held = this.#audio.windows - (this.#open?.utterance.start ?? this.#bufferStart);
      if (toMs(held) > utteranceMs) {
        this.#unplaced += samples.length - at;
        throw new GatewayError('input_audio_buffer_full', { seconds: utteranceMs / 1000 });
      }
      await this.#search(await this.#audio.append(samples.subarray(at, at + SAMPLE_RATE), this.#signal));
      this.#signal.throwIfAborted(); // nothing begins after the end
      this.#listen();
    }
  }

  /** Finds the utterances in windows that were added. The result does not depend on how fast they come. */
  async #search(probabilities: Float32Array): Promise<void> {
    const before = this.#audio.windows - probabilities.length;
    for (const [i, probability] of probabilities.entries()) {
      this.#follow(this.#detector.push(probability));
      if (this.#detector.silence === ASKED_AFTER && (await this.#isComplete(before + i + 1)))
        this.#follow(this.#detector.end());
    }
  }

  /** Lets the utterance that goes on hear what was added, and forgets the audio that no utterance needs. */
  #listen(): void {
    const isManual = this.#settings.turns === null;
    if (isManual && this.#detector.said > 0) this.#open ??= this.#begin(this.#bufferStart);
    const [open, { windows }] = [this.#open, this.#audio];
    open?.utterance.listen({
      windows,
      silence: this.#detector.silence,
      said: this.#detector.said,
      excerpt: () => this.#audio.excerpt(open.utterance.start, windows, open.isContinued),
    });
    // Silence before the first speech is not kept: some clients send it without end, and commit after a turn.
    const kept = isManual ? KEPT_SILENCE : 0;
    if (open === null) this.#bufferStart = Math.max(this.#bufferStart, this.#detector.needed - kept);
    this.#audio.forget(open?.utterance.start ?? this.#bufferStart);
  }

  /**
   * Ends the utterance now, also one that is too short to be found.
   * @throws GatewayError `input_audio_buffer_commit_empty` when there is less than 0.1 s of audio, and also when
   *   nobody speaks in a session that finds the turns itself.
   */
  async commit(): Promise<void> {
    const isManual = this.#settings.turns === null;
    const length = (this.#audio.windows - this.#bufferStart) * WINDOW_SAMPLES + this.#audio.rest;
    if (length < LEAST_COMMIT_SEC * SAMPLE_RATE || !(isManual || this.#detector.hasSpeech))
      throw new GatewayError('input_audio_buffer_commit_empty', {});
    const filled = await this.#audio.fill(this.#signal);
    const before = this.#previousId;
    for (const probability of filled.probabilities) this.#follow(this.#detector.push(probability));
    // The silence that was filled in may have ended the turn, and then nothing is left.
    if (this.#open !== null || this.#previousId === before) {
      const open = this.#open ?? this.#begin(this.#bufferStart);
      this.#end(open, this.#audio.windows, this.#detector.said, { filled: filled.samples });
    }
    this.#unplaced -= filled.samples;
    this.#audio.forgetVoice();
    this.#reset();
  }

  /** Forgets what is not committed. */
  clear(): void {
    this.#unplaced += this.#audio.rest;
    this.#audio.forgetVoice();
    this.#audio.dropRest();
    this.#reset();
  }

  /** Resolves when every utterance that has ended has its text or its failure. */
  settled(): Promise<void> {
    return this.#texts.settled();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#leaving[Symbol.dispose]();
    this.#ended.abort(new GatewayError('client_left', {}));
    await this.#open?.utterance.abandon();
    await this.#texts.settled();
    await this.#vad.close();
  }

  #reset(): void {
    void this.#open?.utterance.abandon();
    if (this.#open !== null) this.#deps.emit({ type: 'dropped', id: this.#open.utterance.id });
    this.#open = null;
    this.#bufferStart = this.#audio.windows;
    this.#detector = detectorFor(this.#settings, this.#audio.windows);
    this.#audio.forget(this.#bufferStart);
  }

  #follow(events: UtteranceEvent[]): void {
    for (const event of events) {
      if (this.#settings.turns === null) continue;
      if (event.type === 'started') {
        this.#open = this.#begin(event.start, event.continued);
        const { id } = this.#open.utterance;
        this.#deps.emit({ type: 'started', id, startMs: this.#timeOf(event.start) });
      } else if (this.#open !== null) {
        const { id } = this.#open.utterance;
        this.#deps.emit({ type: 'stopped', id, endMs: this.#timeOf(event.end) });
        this.#end(this.#open, event.end, this.#detector.said, { isTurn: true });
      }
    }
  }

  /** Whether the utterance is complete that has paused at the end of these windows. */
  async #isComplete(windows: number): Promise<boolean> {
    const threshold = patienceOf(this.#settings)?.threshold;
    if (this.#open === null || threshold === undefined) return false;
    const start = Math.max(this.#open.from, windows - HEARD_WINDOWS);
    const { samples } = this.#audio.excerpt(start, windows);
    return (await this.#deps.turnDetection.probability(samples, this.#signal)) >= threshold;
  }

  /** @param from the window with which it begins for the client */
  #begin(from: number, isContinued = false): OpenUtterance {
    const { request, delay, speakers } = this.#settings;
    const id = this.#deps.newId();
    const { padding, minSilence } = segmenterOf(this.#settings);
    const options = {
      id,
      start: Math.max(this.#bufferStart, from - heardBefore(this.#settings)),
      request,
      timed: speakers !== undefined,
      delay,
      trailing: Math.min(padding, Math.floor(minSilence / 2)),
      signal: this.#signal,
      onDelta: (text: string) => this.#deps.emit({ type: 'delta', id, text }),
    };
    return { utterance: new Utterance(options, this.#deps), from, speakers, isContinued };
  }

  /**
   * @param filled samples of silence at the end that the client did not send
   * @param isTurn whether a pause has ended it
   */
  #end(
    { utterance, from, speakers, isContinued }: OpenUtterance,
    end: number,
    said: number,
    { filled = 0, isTurn = false },
  ): void {
    this.#open = null;
    this.#bufferStart = end;
    this.#deps.emit({ type: 'committed', id: utterance.id, previousId: this.#previousId });
    this.#previousId = utterance.id;
    this.#texts.add(utterance, {
      excerpt: this.#audio.excerpt(utterance.start, end, isContinued),
      startSec: this.#timeOf(utterance.start) / 1000,
      speakers,
      said,
      isTurn,
      audioSec: ((end - from) * WINDOW_SAMPLES - filled) / SAMPLE_RATE,
    });
  }

  /** The time of a window in ms of all audio that the client has sent. */
  #timeOf(window: number): number {
    return toMs(window + this.#unplaced / WINDOW_SAMPLES);
  }
}

function segmenterOf({ request }: LiveSettings) {
  return cuttingFor(request, {}, false).segmenter;
}

function patienceOf({ turns }: LiveSettings) {
  return turns?.eagerness === undefined ? null : PATIENCE[turns.eagerness];
}

/** Windows before the speech that belong to an utterance for the client. */
function prefixOf({ turns }: LiveSettings): number {
  return windowsIn(turns?.prefixPaddingMs ?? 0);
}

/** Windows before the prefix that are heard, so that the speech has as much before it as in a file. */
function heardBefore(settings: LiveSettings): number {
  return Math.max(0, segmenterOf(settings).padding + PADDING - prefixOf(settings));
}

function detectorFor(settings: LiveSettings, first: number): UtteranceDetector {
  const segmenter = segmenterOf(settings);
  const minSilence = patienceOf(settings)?.longestSilence ?? segmenter.minSilence;
  const prefix = prefixOf(settings);
  return createUtteranceDetector(
    { ...segmenter, minSilence },
    { first, prefix, context: prefix + heardBefore(settings) },
  );
}

/** An utterance that has ended. */
interface Spoken {
  excerpt: Excerpt;
  /** Seconds of the audio of the session at which the excerpt begins. */
  startSec: number;
  /** Whether its speakers are told apart. */
  speakers: SpeakerRequest | undefined;
  said: number;
  isTurn: boolean;
  /** What the client sent of it. */
  audioSec: number;
}

type Texts = ReturnType<typeof createTexts>;

/** The texts of utterances that have ended, in their order, and who said them. */
function createTexts(deps: LiveDeps, signal: AbortSignal) {
  const label = createLabeler(deps, signal);
  const pending = new Set<Promise<void>>();
  let pendingSec = 0;
  let last: Promise<unknown> = Promise.resolve();

  /** One that waits for others, or needs the slot again, would keep itself waiting. */
  const keepsSlot = ({ isTurn, speakers }: Spoken) =>
    isTurn && speakers === undefined && pending.size === 0 && (deps.isAnswered?.() ?? false);

  async function finish(utterance: Utterance, spoken: Spoken, before: Promise<unknown>) {
    const { id } = utterance;
    const { excerpt, said, audioSec } = spoken;
    const endedAt = performance.now();
    const tookMs = () => performance.now() - endedAt;
    pendingSec += audioSec;
    try {
      const outcome = await utterance.end(excerpt, said, before, keepsSlot(spoken));
      using _freed = outcome.slot;
      const at = tookMs();
      await before; // the texts come in the order of the utterances
      if (outcome.rest !== '') deps.emit({ type: 'delta', id, text: outcome.rest });
      const labelingAt = performance.now();
      await label(id, spoken, outcome, deps.waitMs - tookMs());
      const labelingMs = performance.now() - labelingAt;
      deps.emit({ type: 'completed', id, audioSec, tookMs: at + labelingMs, outcome });
    } catch (error) {
      await before;
      deps.emit({ type: 'failed', id, audioSec, tookMs: tookMs(), error });
    } finally {
      pendingSec -= audioSec;
    }
  }

  return {
    add(utterance: Utterance, spoken: Spoken): void {
      const text = finish(utterance, spoken, last).finally(() => pending.delete(text));
      pending.add(text);
      last = text;
    },
    /** Seconds of the audio that waits for its text. */
    pendingSec: () => pendingSec,
    /** Resolves when one more of the utterances has its text. */
    nextSettled: () => Promise.race(pending),
    /** Resolves when none is left, including those added in the meantime. */
    async settled(): Promise<void> {
      while (pending.size > 0) await Promise.all(pending);
    },
  };
}

/** Says who says what of an utterance, in parts that are numbered over the whole session. */
function createLabeler(deps: LiveDeps, signal: AbortSignal) {
  let labelUtterance: ReturnType<typeof createLiveSpeakers> | null = null;
  let parts = 0;

  /** The text does not depend on it, and comes also where this fails. */
  return async (
    id: string,
    spoken: Spoken,
    { segments }: UtteranceOutcome,
    waitMs: number,
  ): Promise<void> => {
    const { excerpt, startSec, speakers } = spoken;
    if (speakers === undefined || segments.length === 0) return;
    try {
      const turn = { requestId: id, network: deps.network, waitMs: Math.max(0, waitMs) };
      using hold = await deps.takeWaiting(turn, signal);
      const stop = AbortSignal.any([signal, hold.signal]);
      labelUtterance ??= createLiveSpeakers(deps.transcription.speakers, speakers.count);
      for (const part of await labelUtterance(excerpt.samples, segments, stop)) {
        const [start, end] = [startSec + part.start, startSec + part.end];
        deps.emit({ type: 'segment', id, part: { ...part, id: parts, start, end } });
        parts += 1;
      }
    } catch (error) {
      signal.throwIfAborted();
      deps.emit({ type: 'unlabeled', id, error });
    }
  };
}

const toMs = (windows: number) => Math.round(windows * WINDOW_SEC * 1000);
