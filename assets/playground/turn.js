/** Tells from the loudness of a recording when a turn is over: someone has spoken and then paused, or nobody speaks. */

/** Speech is this many times as loud as the quietest moments, whose level follows the room. */
const ABOVE_FLOOR = 4;
/** No room is more quiet; a microphone that starts may give nothing at all for a moment. */
const MIN_FLOOR = 0.008;
const MIN_SPEECH_SEC = 0.3;
const PAUSE_SEC = 1.2;
/** The floor rises slowly, so that speech does not become the floor. */
const RISE_PER_SEC = 1.1;
/** A turn that goes on for longer is taken as it is. */
const MAX_TURN_SEC = 120;
/** When nobody has spoken for this long, the microphone is let go. */
const MAX_SILENCE_SEC = 30;

/** @returns (level 0..1, sec) => { spoken, over }: whether someone has spoken, and whether the turn is over */
export function createTurn() {
  let floor = 1;
  let lastSec = 0;
  let spokenSec = 0;
  let silentSince = 0;
  return (level, sec) => {
    const stepSec = sec - lastSec;
    lastSec = sec;
    floor = Math.max(MIN_FLOOR, Math.min(level, floor * RISE_PER_SEC ** stepSec));
    if (level > ABOVE_FLOOR * floor) {
      spokenSec += stepSec;
      silentSince = sec;
    }
    const spoken = spokenSec >= MIN_SPEECH_SEC;
    const over = spoken ? sec - silentSince > PAUSE_SEC || sec > MAX_TURN_SEC : sec > MAX_SILENCE_SEC;
    return { spoken, over };
  };
}
