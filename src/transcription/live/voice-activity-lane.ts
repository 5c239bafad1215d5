/**
 * Searches the audio of all live sessions for speech, one piece after the other. The slot protects the order of
 * requests and not the processor: sessions that send faster than anyone speaks would otherwise take it from the request
 * that holds the slot. So while the slot is held there is a rest after each piece, and a longer one between the pieces of
 * sessions that are ahead of real time. Sessions whose clients speak do not notice, because 32 of them need less than a
 * fifth of a core.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { VoiceActivityModel } from '../../engine/types.ts';

/** The rest while the slot is held, as a multiple of the time that the search took. */
const REST = 4;
/** The rest between pieces of sessions that are ahead. 30 of them then slow a transcription by less than a quarter. */
const REST_AHEAD = 30;
/** A session is ahead when it has sent this much more than somebody could have said meanwhile. */
const AHEAD_MS = 5000;
/** A search may have waited for the processor, and the slot may soon be free. */
const MAX_REST_MS = 1000;

/** @param isSlotHeld whether a request computes now */
export function createVoiceActivityLane(
  isSlotHeld: () => boolean,
): (model: VoiceActivityModel) => VoiceActivityModel {
  const inTurn = createTurns(REST, isSlotHeld);
  const aheadInTurn = createTurns(REST_AHEAD, isSlotHeld);
  return (model) => {
    let saidAtMs = Number.NEGATIVE_INFINITY; // when everything could have been said that the session has sent
    return {
      probabilities(samples, options, hooks) {
        const now = performance.now();
        saidAtMs = Math.max(saidAtMs, now) + (samples.length / SAMPLE_RATE) * 1000;
        const search = () =>
          inTurn(() => {
            hooks?.signal?.throwIfAborted();
            return model.probabilities(samples, options, hooks);
          });
        return saidAtMs - now > AHEAD_MS ? aheadInTurn(search) : search();
      },
      close: () => model.close(),
    };
  };
}

/** Runs one task after the other, each with a rest behind it while the slot is held. */
function createTurns(rest: number, isSlotHeld: () => boolean) {
  let last: Promise<void> = Promise.resolve();
  return <T>(task: () => Promise<T>): Promise<T> => {
    let startedAt = 0;
    const done = last.then(() => {
      startedAt = performance.now();
      return task();
    });
    const restFor = async () => {
      if (isSlotHeld()) await sleep(Math.min(MAX_REST_MS, rest * (performance.now() - startedAt)));
    };
    last = done.then(restFor, restFor);
    return done;
  };
}
