/** The sound of one spoken answer of a conversation, which is played while it comes. */
import { createPlayer } from './sample-player.js';

const FORMAT = { rate: 24_000, channels: 1 };

/**
 * @param itemId the item of the conversation that it belongs to
 * @param onFirst (at) when sound begins, in ms of `performance.now`
 * @returns {itemId, add, end, stop, playedMs, over}; `over` resolves to whether the browser let the sound begin
 */
export function createAnswerSound(itemId, onFirst) {
  const waiting = [];
  const player = createPlayer(FORMAT, () => waiting.shift() ?? null, { onFirst });
  return {
    itemId,
    /** @param bytes 16-bit PCM, mono, 24 kHz */
    add(bytes) {
      waiting.push(bytes);
      player.more();
    },
    end: player.end,
    /** @returns what was heard of it, in ms */
    stop() {
      const heardMs = player.playedSec * 1000;
      player.stop();
      return heardMs;
    },
    over: player.over,
  };
}
