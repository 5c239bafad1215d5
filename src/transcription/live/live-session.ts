/**
 * A live session: samples come in, utterances and their texts go out. It holds the slot only while it computes, and
 * at most the audio of one utterance that goes on and of some that wait for their texts.
 */
import { onAbort } from '../../abort.ts';
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { VoiceActivityModel } from '../../engine/types.ts';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import type { SpeakerRequest, TranscriptionRequest } from '../request.ts';
import type { SpokenSegment } from '../segment.ts';
import { HEARD_AROUND } from '../speech/chunks.ts';
import { cuttingFor } from '../speech/cutting.ts';
import { WINDOW_SAMPLES, WINDOW_SEC } from '../speech/voice-activity.ts';
import { warm } from './hearing.ts';
import { createLiveAudio, type Excerpt } from './live-audio.ts';
import { createLiveSpeakers, type LiveSpeakers } from './live-speakers.ts';
import type { Delay } from './stable-text.ts';
import {
  ASKED_AFTER,
  type Eagerness,
  HEARD_WINDOWS,
  PATIENCE,
  type TurnDetection,
} from './turn-detection.ts';
import { createTurns, type TurnEvent } from './turns.ts';
import { createUtterance, type Utterance, type UtteranceDeps, type UtteranceOutcome } from './utterance.ts';

export interface LiveSettings {
  /** How each utterance is heard. Its `voiceActivity` has no padding: silence is trimmed as that of files. */
  request: TranscriptionRequest;
  /**
   * The silence before the speech that belongs to an utterance, and how soon a pause ends it where a model tells whether
   * it is complete; without `eagerness` the silence of the request does. Null when the client says where utterances end.
   */
  turns: { prefixPaddingMs: number; eagerness?: Eagerness } | null;
  delay: Delay;
  /** Absent where speakers are not told apart. What the request says of them does not count. */
  speakers?: SpeakerRequest;
}

/** Times are ms of the audio of the session. */
export type LiveEvent =
  | { type: 'started'; id: string; startMs: number }
  | { type: 'stopped'; id: string; endMs: number }
  | { type: 'committed'; id: string; previousId: string | null }
  | { type: 'delta'; id: string; text: string }
  /**
   * What one speaker says in the utterance, before it is completed. Its parts are numbered over the whole session, and
   * their times are seconds of its audio.
   */
  | { type: 'segment'; id: string; part: SpokenSegment }
  /** Who spoke in the utterance could not be told; its text follows. */
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
}

export interface LiveSession extends AsyncDisposable {
  /** Applies to what is said from now on. Another detection of turns drops what is said just now. */
  configure(settings: LiveSettings): void;
  /**
   * Takes 16 kHz mono. It resolves when the audio is searched for speech, which takes longer while too much waits for
   * its text. Its calls must not overlap with each other, with `commit` or with `clear`.
   * @throws GatewayError `input_audio_buffer_full` when the client ends no utterance
   */
  append(samples: Float32Array): Promise<void>;
  /**
   * Ends the utterance now, also one that is too short to be found.
   * @throws GatewayError `input_audio_buffer_commit_empty` when there is less than 0.1 s of audio. A session that finds
   *   the turns itself throws it also when nobody speaks.
   */
  commit(): Promise<void>;
  /** Forgets what is not committed. */
  clear(): void;
  /** Resolves when every utterance that has ended has its text or its failure. */
  settled(): Promise<void>;
}

/** An utterance that has ended. */
interface Spoken {
  excerpt: Excerpt;
  /** Seconds of the audio of the session at which the excerpt begins. */
  startSec: number;
  /** Whether its speakers are told apart. */
  speakers: SpeakerRequest | undefined;
  said: number;
  /** What the client sent of it. */
  audioSec: number;
}

/** Windows of silence that stay before speech in a buffer which the client commits: one second. */
const KEPT_SILENCE = Math.round(1 / WINDOW_SEC);
/** The least audio that a client can commit, as OpenAI's. */
export const LEAST_COMMIT_SEC = 0.1;

export async function openLiveSession(
  first: LiveSettings,
  deps: LiveDeps,
  signal: AbortSignal,
): Promise<LiveSession> {
  const vad = await deps.loadVoiceActivity(signal);
  const audio = createLiveAudio(vad);
  const ended = new AbortController();
  let settings = first;
  const prefix = () => Math.round((settings.turns?.prefixPaddingMs ?? 0) / 1000 / WINDOW_SEC);
  /** Windows before the prefix that are heard, so that the speech has as much before it as in a file. */
  const heardBefore = () => Math.max(0, segmenter().padding + HEARD_AROUND - prefix());
  let turns = newTurns();
  let open: Utterance | null = null;
  /** The first window that is in no utterance yet. */
  let bufferStart = 0;
  /** The window from which the client has heard that the open utterance goes on. */
  let openFrom = 0;
  /** How the speakers of the open utterance are told apart. */
  let openSpeakers: SpeakerRequest | undefined;
  let speakers: LiveSpeakers | null = null;
  let parts = 0;
  /** Whether the open utterance goes on with speech that was cut. */
  let isContinued = false;
  /** The samples that the client sent and that are in no window, less those of silence that were filled in. */
  let unplaced = 0;
  let previousId: string | null = null;
  let pendingSec = 0;
  let last: Promise<unknown> = Promise.resolve();
  const pending = new Set<Promise<void>>();
  const leaving = onAbort(signal, () => ended.abort(signal.reason));
  prepare();

  function prepare(): void {
    void warm(settings.request, deps.transcription);
    if (patience() !== null) void deps.turnDetection.warm();
  }

  function segmenter() {
    return cuttingFor(settings.request).segmenter;
  }

  function patience() {
    const eagerness = settings.turns?.eagerness;
    return eagerness === undefined ? null : PATIENCE[eagerness];
  }

  function newTurns() {
    const minSilence = patience()?.longestSilence ?? segmenter().minSilence;
    const options = { first: audio.windows, prefix: prefix(), heard: prefix() + heardBefore() };
    return createTurns({ ...segmenter(), minSilence }, options);
  }

  /** @param from the window with which it begins for the client */
  function begin(from: number, continued = false): Utterance {
    const { request, delay } = settings;
    const id = deps.newId();
    const { padding, minSilence } = segmenter();
    const trailing = Math.min(padding, Math.floor(minSilence / 2));
    const onDelta = (text: string) => deps.emit({ type: 'delta', id, text });
    const start = Math.max(bufferStart, from - heardBefore());
    openFrom = from;
    openSpeakers = settings.speakers;
    isContinued = continued;
    const timed = openSpeakers !== undefined;
    const options = { id, start, request, timed, delay, trailing, signal: ended.signal, onDelta };
    return createUtterance(options, deps);
  }

  function end(utterance: Utterance, endWindow: number, said: number, unheard = 0): void {
    open = null;
    bufferStart = endWindow;
    deps.emit({ type: 'committed', id: utterance.id, previousId });
    previousId = utterance.id;
    const excerpt = audio.excerpt(utterance.start, endWindow, isContinued);
    const audioSec = ((endWindow - openFrom) * WINDOW_SAMPLES - unheard) / SAMPLE_RATE;
    const startSec = timeOf(utterance.start) / 1000;
    const spoken = { excerpt, startSec, speakers: openSpeakers, said, audioSec };
    const text = finish(utterance, spoken, last).finally(() => pending.delete(text));
    pending.add(text);
    last = text;
  }

  async function finish(utterance: Utterance, spoken: Spoken, before: Promise<unknown>) {
    const { id } = utterance;
    const { excerpt, said, audioSec } = spoken;
    const endedAt = performance.now();
    const tookMs = () => performance.now() - endedAt;
    pendingSec += audioSec;
    try {
      const outcome = await utterance.end(excerpt, said, before);
      const at = tookMs();
      await before; // the texts come in the order of the utterances
      if (outcome.rest !== '') deps.emit({ type: 'delta', id, text: outcome.rest });
      const labelingAt = performance.now();
      await tellSpeakers(id, spoken, outcome, deps.waitMs - tookMs());
      const labelingMs = performance.now() - labelingAt;
      deps.emit({ type: 'completed', id, audioSec, tookMs: at + labelingMs, outcome });
    } catch (error) {
      await before;
      deps.emit({ type: 'failed', id, audioSec, tookMs: tookMs(), error });
    } finally {
      pendingSec -= audioSec;
    }
  }

  /** Says who says what of an utterance. The text does not depend on it, and comes also where that fails. */
  async function tellSpeakers(id: string, spoken: Spoken, { segments }: UtteranceOutcome, waitMs: number) {
    const { excerpt, startSec, speakers: asked } = spoken;
    if (asked === undefined || segments.length === 0) return;
    try {
      const turn = { requestId: id, network: deps.network, waitMs: Math.max(0, waitMs) };
      using hold = await deps.takeWaiting(turn, ended.signal);
      const stop = AbortSignal.any([ended.signal, hold.signal]);
      speakers ??= createLiveSpeakers(deps.transcription.speakers, asked.count);
      for (const part of await speakers.label(excerpt.samples, segments, stop)) {
        const [start, end] = [startSec + part.start, startSec + part.end];
        deps.emit({ type: 'segment', id, part: { ...part, id: parts, start, end } });
        parts += 1;
      }
    } catch (error) {
      ended.signal.throwIfAborted();
      deps.emit({ type: 'unlabeled', id, error });
    }
  }

  function follow(events: TurnEvent[]): void {
    for (const event of events) {
      if (settings.turns === null) continue;
      if (event.type === 'started') {
        open = begin(event.start, event.continued);
        deps.emit({ type: 'started', id: open.id, startMs: timeOf(event.start) });
      } else if (open !== null) {
        deps.emit({ type: 'stopped', id: open.id, endMs: timeOf(event.end) });
        end(open, event.end, turns.said);
      }
    }
  }

  /** The time of a window in ms of all audio that the client has sent. */
  const timeOf = (window: number) => toMs(window + unplaced / WINDOW_SAMPLES);

  const step = (probability: number) => follow(turns.push(probability));

  /** Finds the utterances in windows that were added. The result does not depend on how fast they come. */
  async function search(heard: Float32Array): Promise<void> {
    const before = audio.windows - heard.length;
    for (const [i, probability] of heard.entries()) {
      step(probability);
      if (turns.silence === ASKED_AFTER && (await isComplete(before + i + 1))) follow(turns.end());
    }
  }

  /** Whether the utterance is complete that has paused at the end of these windows. */
  async function isComplete(windows: number): Promise<boolean> {
    const threshold = patience()?.threshold;
    if (open === null || threshold === undefined) return false;
    const { samples } = audio.excerpt(Math.max(openFrom, windows - HEARD_WINDOWS), windows);
    return (await deps.turnDetection.probability(samples, ended.signal)) >= threshold;
  }

  function listen(): void {
    if (settings.turns === null && turns.said > 0) open ??= begin(bufferStart);
    const [utterance, windows] = [open, audio.windows];
    utterance?.listen({
      windows,
      silence: turns.silence,
      said: turns.said,
      excerpt: () => audio.excerpt(utterance.start, windows, isContinued),
    });
    // Silence before the first speech is not kept: some clients send it without end, and commit after a turn.
    const kept = settings.turns === null ? KEPT_SILENCE : 0;
    if (open === null) bufferStart = Math.max(bufferStart, turns.needed - kept);
    audio.forget(open?.start ?? bufferStart);
  }

  function reset(): void {
    void open?.abandon();
    open = null;
    bufferStart = audio.windows;
    turns = newTurns();
    audio.forget(bufferStart);
  }

  return {
    configure(next) {
      const tuning = ({ turns, request }: LiveSettings) => JSON.stringify([turns, request.voiceActivity]);
      const isOther = tuning(next) !== tuning(settings);
      settings = next;
      prepare();
      if (isOther) reset();
    },
    async append(samples) {
      for (let at = 0; at < samples.length; at += SAMPLE_RATE) {
        while (pendingSec * 1000 > deps.limits.pendingMs) await Promise.race(pending);
        if (toMs(audio.windows - (open?.start ?? bufferStart)) > deps.limits.utteranceMs) {
          unplaced += samples.length - at;
          throw new GatewayError('input_audio_buffer_full', { seconds: deps.limits.utteranceMs / 1000 });
        }
        const heard = await audio.append(samples.subarray(at, at + SAMPLE_RATE), ended.signal);
        await search(heard);
        ended.signal.throwIfAborted(); // nothing begins after the end
        listen();
      }
    },
    async commit() {
      const isManual = settings.turns === null;
      const length = (audio.windows - bufferStart) * WINDOW_SAMPLES + audio.rest;
      if (length < LEAST_COMMIT_SEC * SAMPLE_RATE || !(isManual || turns.hasSpeech))
        throw new GatewayError('input_audio_buffer_commit_empty', {});
      const filled = await audio.fill(ended.signal);
      const before = previousId;
      filled.probabilities.forEach(step);
      // The silence that was filled in may have ended the turn, and then nothing is left.
      if (open !== null || previousId === before)
        end(open ?? begin(bufferStart), audio.windows, turns.said, filled.samples);
      unplaced -= filled.samples;
      audio.forgetVoice();
      reset();
    },
    clear() {
      unplaced += audio.rest;
      audio.forgetVoice();
      audio.dropRest();
      reset();
    },
    async settled() {
      while (pending.size > 0) await Promise.all(pending);
    },
    async [Symbol.asyncDispose]() {
      leaving[Symbol.dispose]();
      ended.abort(new GatewayError('client_left', {}));
      await open?.abandon();
      await Promise.all(pending);
      await vad.close();
    },
  };
}

const toMs = (windows: number) => Math.round(windows * WINDOW_SEC * 1000);
