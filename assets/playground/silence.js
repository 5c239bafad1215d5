/** Tells from the loudness of a recording when someone has spoken and then paused. */

/** Speech is this many times as loud as the quietest moments, whose level follows the room. */
const ABOVE_FLOOR = 4;
/** No room is more quiet; a microphone that starts may give nothing at all for a moment. */
const MIN_FLOOR = 0.008;
const MIN_SPEECH_SEC = 0.3;
const PAUSE_SEC = 1.2;
/** The floor rises slowly, so that speech does not become the floor. */
const RISE_PER_SEC = 1.1;

/** @returns (level 0..1, sec) => 'before' speech, 'during' it, or 'after' it has paused */
export function createPause() {
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
    if (spokenSec < MIN_SPEECH_SEC) return 'before';
    return sec - silentSince > PAUSE_SEC ? 'after' : 'during';
  };
}
