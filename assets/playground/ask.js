/** Moments in which the page needs its reader: the API key, and the wait for a busy gateway. */
import { shortTime } from './captions.js';

/** Two requests that are refused at once ask once. Resolves to null when the reader gives up. */
export function createKeyDialog({ dialog, input, wrong, cancel }) {
  let pending = null;
  cancel.addEventListener('click', () => dialog.close(''));

  const ask = (wasWrong) =>
    new Promise((resolve) => {
      input.value = '';
      wrong.hidden = !wasWrong;
      dialog.returnValue = '';
      dialog.showModal();
      const closed = () => {
        const key = input.value.trim();
        input.value = '';
        resolve(dialog.returnValue === 'use' && key !== '' ? key : null);
      };
      dialog.addEventListener('close', closed, { once: true });
    });

  return (wasWrong) => {
    pending ??= ask(wasWrong).finally(() => {
      pending = null;
    });
    return pending;
  };
}

const HOLDERS = { asr: 'another transcription', tts: 'speech being made', llm: 'a chat' };

/**
 * @param parts elements by name; `after` takes the focus when the box goes
 * @returns (failure, signal) => Promise that resolves when it is time to try again, rejects when aborted
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
