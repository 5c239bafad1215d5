/** Shows what is said while it is said: words that may still change in gray, and finished ones in black. */

import { openLive } from './live-socket.js';
import { listen, whyNoMicrophone } from './microphone.js';
import { whyNoRecording } from './recorder.js';
import { copy as copyText } from './take.js';

/** A session may last a day; the page keeps its last texts. */
const MAX_FINALS = 1000;

const GONE = 'The microphone went away.';

/**
 * @param parts elements by name: button, label, stop, copy, box, status, problem, text, finals, partials
 * @param readChoices () => {model, language}
 * @param checkKey () => Promise, which asks for the key where one is missing and rejects where none is given
 */
export function createLive(parts, readChoices, checkKey) {
  const { button, label, stop, copy, box, status, problem, text: scroller, finals, partials } = parts;
  /** 'idle', 'starting', 'listening' or 'finishing' */
  let state = 'idle';
  let session = null;
  let stopMicrophone = async () => {};
  const rows = new Map();
  let isAtEnd = true;

  function show(next, text) {
    state = next;
    status.textContent = text;
    button.disabled = next === 'starting' || next === 'finishing';
    button.classList.toggle('recording', next === 'listening');
    stop.hidden = next !== 'listening';
    label.textContent = next === 'listening' ? 'Stop live' : 'Live';
  }

  /** A disabled or hidden button loses the focus; it comes back without moving the page away from the text. */
  function focusButton() {
    button.focus({ preventScroll: true });
  }

  function fail(message) {
    problem.textContent = message;
    problem.hidden = false;
  }

  async function start() {
    problem.hidden = true;
    finals.replaceChildren();
    copy.hidden = true;
    show('starting', 'Starting.');
    // The text is far below the button on a narrow screen.
    if (box.getBoundingClientRect().top > innerHeight - 100) box.scrollIntoView();
    try {
      await checkKey();
      const pieces = (bytes) => session?.append(bytes);
      stopMicrophone = await listen(pieces, () => {
        if (state === 'starting') return session?.abort(GONE);
        fail(GONE);
        finish();
      }).catch((error) => {
        throw new Error(whyNoMicrophone(error));
      });
      session = openLive(readChoices(), { ready, partial, final, failed, closed });
    } catch (error) {
      await closed(error.message);
    }
  }

  function ready() {
    const hadNoFocus = document.activeElement === document.body;
    show('listening', 'Listening.');
    if (hadNoFocus) focusButton();
  }

  function finish() {
    if (state !== 'listening') return;
    show('finishing', 'Waiting for the last text.');
    stopMicrophone();
    session.finish();
  }

  async function closed(why) {
    session = null;
    for (const id of [...rows.keys()]) remove(id);
    const hadNoFocus = document.activeElement === document.body;
    show('idle', why === null ? 'Stopped.' : 'That did not work.');
    if (hadNoFocus) focusButton();
    if (why !== null) fail(why);
    await stopMicrophone();
  }

  function partial(id, delta) {
    if (!rows.has(id)) {
      const row = document.createElement('p');
      row.dir = 'auto';
      rows.set(id, row);
      partials.append(row);
    }
    rows.get(id).append(delta);
    follow();
  }

  /** Shows what was added in the next frame, unless the reader has scrolled back. */
  function follow() {
    if (isAtEnd) requestAnimationFrame(() => scroller.scrollTo(0, scroller.scrollHeight));
  }

  function remove(id) {
    rows.get(id)?.remove();
    rows.delete(id);
  }

  function final(id, text, latencyMs) {
    remove(id);
    if (text.trim() === '') return;
    const row = document.createElement('li');
    const said = document.createElement('span');
    said.className = 'said';
    said.dir = 'auto';
    said.textContent = text.trim();
    const latency = document.createElement('span');
    latency.className = 'note';
    latency.textContent = `${Math.round(latencyMs)} ms after the end of speech`;
    row.append(said, ' ', latency);
    if (finals.childElementCount >= MAX_FINALS) finals.firstChild.remove();
    finals.append(row);
    copy.hidden = false;
    follow();
  }

  function failed(id, message) {
    remove(id);
    fail(message);
  }

  button.addEventListener('click', () => (state === 'idle' ? start() : finish()));
  stop.addEventListener('click', finish);
  copy.addEventListener('click', async () => {
    const texts = [...finals.querySelectorAll('.said')].map((said) => said.textContent);
    const happened = await copyText(`${texts.join('\n')}\n`, copy, finals);
    if (state === 'idle') status.textContent = happened; // else it says that someone is heard
  });
  scroller.addEventListener('scroll', () => {
    isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 40;
  });
  if (whyNoRecording() !== null) button.disabled = true;
}
