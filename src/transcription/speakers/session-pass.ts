/** The part of a session that tells speakers apart: it hears every block, and gives every segment its speaker. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { SpeakerModel } from '../../engine/types.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import type { SpeakerRequest } from '../request.ts';
import type { UnnumberedSegment } from '../segment.ts';
import { createDiarization, type Turn } from './diarization.ts';
import { createLabels } from './names.ts';
import { createOnlineDiarization } from './online.ts';
import { unit } from './voice.ts';
import { bySpeaker } from './words.ts';

/** A person, and 2 to 10 s of what that person says, as 16 kHz mono. */
export interface Reference {
  name: string;
  samples: Float32Array;
}

/** Who spoke in the audio. */
export interface SpeakerSummary {
  /** By start; turns of different speakers may overlap. */
  turns: Turn[];
  /** Every speaker in the order of appearance, with the seconds of all turns. */
  speakers: { speaker: string; seconds: number }[];
  /** The seconds in which the networks or the clustering worked; absent where nothing was told apart by voice. */
  tookSec?: number;
}

export type SpeakerPass = Awaited<ReturnType<typeof createSpeakerPass>>;

interface SpeakerPassOptions {
  request: SpeakerRequest;
  references: readonly Reference[];
  /** True to label each segment at once; else all of them wait for the end of the audio, which is more accurate. */
  atOnce: boolean;
  signal: AbortSignal;
}

/** A word in no turn gets the nearest one within this time; a segment that is labeled at once cannot look ahead. */
export const NEAR_SEC = 30;

/** @param model is needed until the last segment is labeled, which may be after all of them were recognized */
export async function createSpeakerPass(
  model: SpeakerModel,
  { request, references, atOnce, signal }: SpeakerPassOptions,
) {
  let tookSec = 0;
  let under = 0;
  let since = 0;
  /** Of calls that wait for each other only one counts at a time. */
  async function timed<T>(work: () => Promise<T>): Promise<T> {
    if (under === 0) since = performance.now();
    under += 1;
    try {
      return await work();
    } finally {
      under -= 1;
      if (under === 0) tookSec += (performance.now() - since) / 1000;
    }
  }

  const known: { name: string; direction: Float32Array }[] = [];
  for (const { name, samples } of references)
    known.push({
      name,
      direction: unit(await timed(() => model.embeddings(samples, undefined, { signal }))),
    });
  const diarization = (atOnce ? createOnlineDiarization : createDiarization)(model, {
    clustering: { count: request.count, maxPoints: BUDGETS.speakers.maxPoints },
    known,
    signal,
  });
  // Words are someone's, even where the networks heard no one.
  const names = references.map(({ name }) => name);
  const unknownSpeaker = createLabels(() => undefined, names)(0);
  let samples = 0;
  let turns: Turn[] = [];
  const speech: { startSec: number; endSec: number }[] = [];
  let before: string | undefined;

  async function parts(segment: UnnumberedSegment): Promise<UnnumberedSegment[]> {
    const until = atOnce ? segment.end : segment.end + NEAR_SEC;
    const near = await timed(() => diarization.turnsBetween(segment.start - NEAR_SEC, until));
    const found = bySpeaker(segment, near, before ?? near[0]?.speaker ?? unknownSpeaker);
    before = found.at(-1)?.speaker;
    return found;
  }

  return {
    /** Takes the next block of the audio. */
    push(block: Float32Array): Promise<void> {
      samples += block.length;
      return timed(() => diarization.push(block));
    },
    /** Takes the spans of speech that has a text, in seconds; all of them before the last segment is labeled. */
    noteSpeech: (spans: typeof speech) => void speech.push(...spans),
    /** The same words in the same order, in segments of one speaker each. */
    async *label(segments: AsyncIterable<UnnumberedSegment>): AsyncGenerator<UnnumberedSegment, void> {
      const waiting: UnnumberedSegment[] = [];
      for await (const segment of segments) {
        if (atOnce) yield* await parts(segment);
        else waiting.push(segment);
      }
      const all = await timed(diarization.finish);
      // The last frame of the segmentation may end behind the audio.
      const within = all.map((turn) => ({ ...turn, end: Math.min(turn.end, samples / SAMPLE_RATE) }));
      turns = turnsOfSpeakers(within, speech);
      for (const segment of waiting) yield* await parts(segment);
    },
    /** Complete after the last segment. */
    summary: (): SpeakerSummary => ({ ...summaryOf(turns), tookSec }),
  };
}

/** The turns of those who are heard where someone speaks. To the networks a tone or music may be a voice, too. */
function turnsOfSpeakers(turns: Turn[], speech: readonly { startSec: number; endSec: number }[]): Turn[] {
  const speakers = new Set<string>();
  for (const { speaker, start, end } of turns)
    if (!speakers.has(speaker) && speech.some((span) => span.startSec < end && start < span.endSec))
      speakers.add(speaker);
  return turns.filter(({ speaker }) => speakers.has(speaker));
}

/** @param turns in any order */
export function summaryOf(turns: readonly Turn[]): SpeakerSummary {
  const inOrder = turns.toSorted((a, b) => a.start - b.start || a.end - b.end);
  const seconds = new Map<string, number>();
  for (const { speaker, start, end } of inOrder)
    seconds.set(speaker, (seconds.get(speaker) ?? 0) + end - start);
  const speakers = [...seconds].map(([speaker, spoken]) => ({ speaker, seconds: spoken }));
  return { turns: inOrder, speakers };
}
