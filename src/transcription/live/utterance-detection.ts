/**
 * Finds the utterances in speech that is still going on, by the same rules that cut files (`voice-activity.ts`): an
 * utterance is one span of speech, and it ends with the silence that was asked for. Pure.
 */
import { createSegmenter, type SegmenterOptions } from '../speech/voice-activity.ts';

/** What has happened at a window. `start` and `end` count windows from the beginning of the audio. */
export type UtteranceEvent =
  /** It is `continued` where it goes on with speech that was too long and has been cut. */
  { type: 'started'; start: number; continued?: true } | { type: 'stopped'; end: number };

export type UtteranceDetector = ReturnType<typeof createUtteranceDetector>;

/**
 * @param first the window at which the audio begins
 * @param prefix windows before the speech that belong to an utterance
 * @param context windows before the speech that are needed to decode it
 */
export function createUtteranceDetector(
  options: SegmenterOptions,
  { first, prefix, context }: { first: number; prefix: number; context: number },
) {
  const segmenter = createSegmenter(options);
  let position = first;
  let previousEnd = first;
  let isReported = false; // the utterance that goes on
  let said = 0;
  let lastSpeech = first;
  let continued = false; // the span that is open

  function start(at: number): UtteranceEvent[] {
    if (isReported) return [];
    isReported = true;
    return [{ type: 'started', start: Math.max(previousEnd, at - prefix), ...(continued && { continued }) }];
  }

  function stop(at: number): UtteranceEvent[] {
    isReported = false;
    previousEnd = at;
    return [{ type: 'stopped', end: at }];
  }

  return {
    /** Takes the probability of the next window. */
    push(probability: number): UtteranceEvent[] {
      const spans = segmenter.push(Float32Array.of(probability));
      position += 1;
      const { open } = segmenter;
      if (open !== null && first + open.end > lastSpeech) {
        lastSpeech = first + open.end;
        said += 1;
      }
      // A span that was too long has been cut some time ago, and what follows the cut goes on.
      const end = open === null ? position : first + open.start;
      const events = spans.flatMap((span) => [...start(first + span.start), ...stop(end)]);
      continued = open?.continued ?? false;
      const isSpeech = open !== null && open.end - open.start >= options.minSpeech;
      return isSpeech ? [...events, ...start(first + open.start)] : events;
    },
    /** Ends the utterance that goes on, as if the silence had been long enough. */
    end(): UtteranceEvent[] {
      return segmenter.finish().flatMap((span) => [...start(first + span.start), ...stop(position)]);
    },
    /** The window from which audio is still needed. */
    get needed() {
      return Math.max(previousEnd, first + (segmenter.open?.start ?? position - first) - context);
    },
    /** True while there is speech, also speech that is too short to be reported. */
    get hasSpeech() {
      return segmenter.open !== null;
    },
    /** Windows of silence after the last speech; 0 while someone speaks or nothing was said. */
    get silence() {
      return said === 0 ? 0 : position - lastSpeech;
    },
    /** Grows whenever there is more speech, so two equal values mean that nothing was said between them. */
    get said() {
      return said;
    },
  };
}
