/**
 * Searches the audio of all live sessions for speech, one piece after the other. The slot protects the order of
 * requests and not the processor: sessions that send faster than anyone speaks would otherwise take it from the request
 * that holds the slot. So one piece at most is searched at a time, and while the slot is held there is a rest after each,
 * four times as long. Sessions whose clients speak do not notice, because 32 of them need less than a fifth of a core.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { VoiceActivityModel } from '../../engine/types.ts';

/** The rest while the slot is held, as a multiple of the time that the search took. */
const REST = 4;

/** @param isSlotHeld whether a request computes now */
export function createVoiceActivityLane(
  isSlotHeld: () => boolean,
): (model: VoiceActivityModel) => VoiceActivityModel {
  let last: Promise<void> = Promise.resolve();
  return (model) => ({
    probabilities(samples, options, hooks) {
      let startedAt = 0;
      const search = last.then(() => {
        startedAt = performance.now();
        hooks?.signal?.throwIfAborted();
        return model.probabilities(samples, options, hooks);
      });
      const rest = async () => {
        if (isSlotHeld()) await sleep(REST * (performance.now() - startedAt));
      };
      last = search.then(rest, rest);
      return search;
    },
    close: () => model.close(),
  });
}
