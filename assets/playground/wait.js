/** The page waits here for a busy gateway, and tells its reader how long. */
import { shortTime } from './captions.js';

const HOLDERS = { asr: 'another transcription', tts: 'speech being made', llm: 'a chat' };

/**
 * @param parts elements by name; `after` takes the focus when the box goes
 * @returns (failure, signal) => Promise that resolves when it is time to try again, and rejects when it is aborted
 */
export function createWaiting({ box, text, countdown, now, after }, say) {
  return ({ heldBy, heldForMs, retryAfterSec }, signal) => {
    const who = HOLDERS[heldBy] ?? 'somebody else';
    text.textContent = `The gateway is busy with ${who}, for ${shortTime(heldForMs / 1000)} so far.`;
    say(`Busy with ${who}. Trying again by itself.`);
    box.hidden = false;
    const until = performance.now() + (retryAfterSec ?? 5) * 1000;
    return new Promise((resolve, reject) => {
      const tick = () => {
        const left = Math.ceil((until - performance.now()) / 1000);
        countdown.textContent = String(Math.max(0, left));
        if (left <= 0) again();
      };
      const timer = setInterval(tick, 200);
      const end = (settle) => {
        clearInterval(timer);
        now.removeEventListener('click', again);
        signal.removeEventListener('abort', stop);
        if (box.contains(document.activeElement)) after.focus();
        box.hidden = true;
        settle();
      };
      const again = () => end(resolve);
      const stop = () => end(() => reject(signal.reason));
      now.addEventListener('click', again);
      signal.addEventListener('abort', stop);
      tick();
    });
  };
}
