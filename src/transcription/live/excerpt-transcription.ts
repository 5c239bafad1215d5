/** Transcribes a part of live audio as a file is transcribed: by a session over it. */
import type { Hold } from '../../engine/slot.ts';
import type { TranscriptionRequest } from '../request.ts';
import type { Segment } from '../segment.ts';
import { openTranscription, type Transcript, type TranscriptionDeps } from '../session.ts';
import { type Excerpt, knownProbabilities, sourceOf } from './live-audio.ts';

export interface ExcerptRequest {
  request: TranscriptionRequest;
  requestId: string;
  /** True for a text of speech that still goes on. */
  draft?: boolean;
  /** True where the times of the words are needed. */
  timed?: boolean;
  /** Called when everything else is there. */
  takeSlot(): Hold | Promise<Hold>;
  signal: AbortSignal;
}

/** @throws as `openTranscription` and its segments; the slot is free again in any case */
export async function transcribeExcerpt(
  excerpt: Excerpt,
  { request, takeSlot, ...asked }: ExcerptRequest,
  deps: TranscriptionDeps,
): Promise<Transcript> {
  const input = {
    timed: false,
    ...asked,
    openAudio: async () => sourceOf(excerpt),
    leveled: false,
    continued: excerpt.continued,
    onFetching: () => undefined,
  };
  const slot = { isFree: deps.slot.isFree, take: takeSlot };
  const own = { ...deps, slot, voiceActivity: knownProbabilities(excerpt) };
  // Speakers are told apart over the whole session (`live-speakers.ts`), and not in each part of it.
  await using session = await openTranscription({ ...request, speakers: null }, input, own);
  const segments: Segment[] = [];
  for await (const segment of session.segments()) segments.push(segment);
  return { route: session.route, segments, summary: session.summary() };
}

/**
 * Runs `prepare` for one value at a time. Of the values that come meanwhile the newest is next, and the others are left
 * out: a client may change its settings as often as it likes, and models take seconds and memory to load.
 */
export function newestAtATime<T>(prepare: (value: T) => Promise<void>): (value: T) => void {
  let newest: { value: T } | null = null;
  let isRunning = false;
  async function run(): Promise<void> {
    isRunning = true;
    for (let next = newest; next !== null; next = newest) {
      newest = null;
      await prepare(next.value);
    }
    isRunning = false;
  }
  return (value) => {
    newest = { value };
    if (!isRunning) void run();
  };
}

/** Loads the model ahead of the first utterance, if its weights are there; a failure shows with the utterance. */
export async function warm(request: TranscriptionRequest, deps: TranscriptionDeps): Promise<void> {
  try {
    const { model } = deps.route(request);
    if (!model.servable || !deps.hasWeights({ modelId: model.id, speakers: false })) return;
    await using _lease = await deps.models.lease(model.id);
  } catch {
    // The utterance that needs the model says why it cannot be had.
  }
}
