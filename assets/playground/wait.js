/** A tab waits here for a busy gateway, and tells its reader how long. */
import { shortTime } from './captions.js';

const HOLDERS = { asr: 'another transcription', tts: 'speech synthesis', llm: 'a chat' };

/**
 * @param box is empty and hidden; the template of the page fills it
 * @param after takes the focus when the box goes
 * @param onStop () => void, for a reader who waits no longer
 * @returns (failure, signal) => Promise that resolves when it is time to try again, and rejects when it is aborted
 */
export function createWaiting({ box, after, onStop }, say) {
  box.append(document.getElementById('busy-template').content.cloneNode(true));
  const [text, countdown, now] = ['.busy-text', '.countdown', '.retry-now'].map((name) =>
    box.querySelector(name),
  );
  box.querySelector('.stop-waiting').addEventListener('click', onStop);
  return ({ heldBy, heldForMs, retryAfterSec }, signal) => {
    const who = HOLDERS[heldBy] ?? 'another request';
    text.textContent = `The gateway is busy with ${who}, for ${shortTime(heldForMs / 1000)} so far.`;
    say(`Busy with ${who}. Retrying automatically.`);
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
