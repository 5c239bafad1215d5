/**
 * Tells the speakers of a live session apart, utterance after utterance. What was said is one audio to it, without the
 * pauses, so that a speaker keeps the label of the first utterance. Nothing older than is needed to label the next one
 * is held, besides the voices. They are not written anywhere, and end with the session.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { ModelCache } from '../../engine/cache.ts';
import type { SpeakerModel } from '../../engine/types.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import { DIARIZATION } from '../../models/catalogue.ts';
import type { SpeakerRequest } from '../request.ts';
import type { Segment, UnnumberedSegment } from '../segment.ts';
import { createLabels } from '../speakers/names.ts';
import { createOnlineDiarization } from '../speakers/online.ts';
import { NEAR_SEC } from '../speakers/session-pass.ts';
import { bySpeaker } from '../speakers/words.ts';

/**
 * Gives the segments of an utterance in parts of one speaker each, by the times of its audio. The calls must not overlap.
 * The caller holds the slot.
 */
type LabelUtterance = (
  samples: Float32Array,
  segments: readonly Segment[],
  signal: AbortSignal,
) => Promise<UnnumberedSegment[]>;

export function createLiveSpeakers(
  models: ModelCache<SpeakerModel>,
  count: SpeakerRequest['count'],
): LabelUtterance {
  const unknownSpeaker = createLabels(() => undefined)(0);
  /** The model is leased for each utterance, so that a session which rests does not keep it in memory. */
  let leased: { model: SpeakerModel; signal: AbortSignal } | null = null;
  let samplesBefore = 0;
  let before: string | undefined;

  function borrowed(): { model: SpeakerModel; signal: AbortSignal } {
    if (leased === null) throw new Error('The speakers are told apart outside of an utterance');
    return leased;
  }

  const model: SpeakerModel = {
    segmentation(samples, options) {
      const { model, signal } = borrowed();
      return model.segmentation(samples, options, { signal });
    },
    embeddings(samples, options) {
      const { model, signal } = borrowed();
      return model.embeddings(samples, options, { signal });
    },
    close: async () => undefined,
  };

  const diarization = createOnlineDiarization(model, {
    clustering: { count, maxPoints: BUDGETS.speakers.maxPoints },
    known: [],
    relabels: true,
    signal: new AbortController().signal, // that of the utterance stops the model
  });

  return async (samples, segments, signal) => {
    await using lease = await models.lease(DIARIZATION.id);
    leased = { model: lease.model, signal };
    const offset = samplesBefore / SAMPLE_RATE;
    samplesBefore += samples.length;
    try {
      await diarization.push(samples);
      const parts: UnnumberedSegment[] = [];
      for (const segment of segments) {
        const [from, to] = [offset + segment.start, offset + segment.end];
        const near = await diarization.turnsBetween(from - NEAR_SEC, to);
        const turns = near.map(({ speaker, start, end }) => ({
          speaker,
          start: start - offset,
          end: end - offset,
        }));
        const found = bySpeaker(segment, turns, before ?? turns[0]?.speaker ?? unknownSpeaker);
        before = found.at(-1)?.speaker;
        parts.push(...found);
      }
      diarization.forget(samplesBefore / SAMPLE_RATE - NEAR_SEC);
      return parts;
    } catch (error) {
      // Windows without their voices would keep back all that come after them.
      diarization.restart();
      samplesBefore = 0;
      throw error;
    } finally {
      leased = null;
    }
  };
}
