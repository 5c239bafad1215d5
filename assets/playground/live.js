/** Shows live text: words that may still change in gray, finished ones in black. */

import { shortTime } from './captions.js';
import { createKeptSound } from './kept-sound.js';
import { openLive } from './live-socket.js';
import { createLiveText } from './live-text.js';
import { createMenu } from './menu.js';
import { listen, toLevel, whyNoMicrophone } from './microphone.js';
import { createMicrophoneChoice } from './microphone-choice.js';
import { whyNoRecording } from './recorder.js';
import { copy as copyText, download, save } from './take.js';

const GONE = 'The microphone was disconnected. The text so far is still here.';

/**
 * @param parts elements by name: button, label, stop, pause, copy, exports, sound, clear, box, status, problem, why,
 *   again, meter, level, clock, soundNote, microphoneField, microphone, text, finals, partials
 * @param readChoices () => {model, language}
 * @param checkKey () => Promise, which asks for the key where one is missing and rejects where none is given
 */
export function createLive(parts, readChoices, checkKey) {
  const { button, stop, pause, again, problem, why } = parts;
  const view = createView(parts);
  const text = createLiveText(parts);
  const sound = createKeptSound();
  const choice = createMicrophoneChoice(parts.microphoneField, parts.microphone, () => changeMicrophone());
  /** 'idle', 'starting', 'listening', 'paused' or 'finishing' */
  let state = 'idle';
  let session = null;
  let stopMicrophone = async () => {};
  /** What earlier sessions have sent, which comes before this one in the sound that is kept. */
  let beforeMs = 0;

  function show(next, words) {
    state = next;
    view.show(next, words, { hasText: text.segments.length > 0, hasSound: !sound.isEmpty });
  }

  function fail(message, canReconnect) {
    why.textContent = message;
    problem.hidden = false;
    again.hidden = !canReconnect;
  }

  function hear(bytes) {
    view.level = state === 'paused' ? 0 : toLevel(bytes);
    if (!session?.append(bytes)) return;
    sound.append(bytes);
    view.clockMs = beforeMs + session.sentMs;
    view.isSoundFull = sound.isFull;
  }

  async function openMicrophone() {
    stopMicrophone = await listen(hear, gone, { deviceId: choice.read() }).catch((error) => {
      throw new Error(whyNoMicrophone(error));
    });
    choice.refresh();
  }

  function gone() {
    if (state === 'starting') return session?.abort(GONE);
    fail(GONE, true);
    finish();
  }

  async function changeMicrophone() {
    if (state !== 'listening' && state !== 'paused') return;
    await stopMicrophone();
    await openMicrophone().catch((error) => session?.abort(error.message));
  }

  async function start() {
    problem.hidden = true;
    text.begin();
    show('starting', 'Starting.');
    view.scrollToText();
    try {
      await checkKey();
      await openMicrophone();
      session = openLive(readChoices(), { ready, partial: text.partial, final, failed, closed });
    } catch (error) {
      await closed(error.message);
    }
  }

  function ready() {
    view.keepFocus(() => show('listening', 'Listening.'));
  }

  function finish() {
    if (state !== 'listening' && state !== 'paused') return;
    show('finishing', 'Waiting for the last text.');
    stopMicrophone();
    session.finish();
  }

  function pauseOrGoOn() {
    if (state === 'paused') {
      session.resume();
      return show('listening', 'Listening.');
    }
    session.pause();
    show('paused', 'Paused. Nothing is sent.');
  }

  async function closed(reason) {
    const wasOpen = state !== 'starting';
    const endMs = beforeMs + (session?.sentMs ?? 0);
    beforeMs = endMs;
    session = null;
    text.keepPartials(endMs);
    view.keepFocus(() => show('idle', reason === null ? 'Stopped.' : 'That did not work.'));
    if (reason !== null) fail(reason, wasOpen);
    await stopMicrophone();
  }

  function final(id, said, latencyMs, { startMs, endMs }) {
    const span = { startMs: beforeMs + startMs, endMs: beforeMs + endMs };
    text.final(id, said, `${Math.round(latencyMs)} ms after the end of speech`, span);
    view.show(state, null, { hasText: text.segments.length > 0, hasSound: !sound.isEmpty });
  }

  function failed(id, message) {
    text.remove(id);
    fail(message, false);
  }

  function clear() {
    text.clear();
    sound.clear();
    beforeMs = 0;
    view.clockMs = 0;
    view.isSoundFull = false;
    problem.hidden = true;
    show('idle', 'Cleared. Words appear here as you speak.');
    button.focus({ preventScroll: true });
  }

  button.addEventListener('click', () => (state === 'idle' ? start() : finish()));
  again.addEventListener('click', () => {
    button.focus({ preventScroll: true });
    if (state === 'idle') start();
  });
  stop.addEventListener('click', finish);
  pause.addEventListener('click', pauseOrGoOn);
  parts.clear.addEventListener('click', clear);
  createTaking(parts, text, sound, (words) => {
    if (state === 'idle') view.say(words); // else it says that someone is heard
  });
  if (whyNoRecording() !== null) button.disabled = true;
}

/** How a session is shown besides its text. */
function createView({
  button,
  label,
  stop,
  pause,
  copy,
  exports,
  sound,
  clear,
  box,
  status,
  meter,
  level,
  clock,
  soundNote,
}) {
  const say = (words) => {
    status.textContent = words;
  };
  return {
    say,
    /** @param words null leaves those that are there */
    show(state, words, { hasText, hasSound }) {
      if (words !== null) say(words);
      const isOpen = state === 'listening' || state === 'paused';
      button.disabled = state === 'starting' || state === 'finishing';
      button.classList.toggle('recording', isOpen);
      label.textContent = isOpen ? 'Stop live' : 'Live';
      for (const each of [stop, pause]) each.hidden = !isOpen;
      pause.textContent = state === 'paused' ? 'Resume' : 'Pause';
      meter.hidden = !isOpen && !hasText && !hasSound;
      level.hidden = !isOpen;
      copy.hidden = !hasText;
      exports.hidden = !hasText && !hasSound;
      sound.hidden = !hasSound;
      clear.hidden = state !== 'idle' || !(hasText || hasSound);
    },
    set level(value) {
      level.value = value;
    },
    set clockMs(ms) {
      const time = shortTime(ms / 1000);
      if (clock.textContent !== time) clock.textContent = time;
    },
    set isSoundFull(value) {
      soundNote.hidden = !value;
    },
    /** A disabled or hidden button loses the focus; it comes back without moving the page away from the text. */
    keepFocus(change) {
      const hadNoFocus = document.activeElement === document.body;
      const wasInside = box.contains(document.activeElement);
      change();
      const isLost = wasInside && document.activeElement?.checkVisibility() !== true;
      if (hadNoFocus || isLost) button.focus({ preventScroll: true });
    },
    /** The text is far below the button on a narrow screen. */
    scrollToText() {
      if (box.getBoundingClientRect().top > innerHeight - 100) box.scrollIntoView();
    },
  };
}

/** Takes the text and the sound away. */
function createTaking({ copy, exports, finals }, text, sound, say) {
  copy.addEventListener('click', async () => say(await copyText(text.lines, copy, finals)));
  createMenu(exports, ({ dataset: { take: kind } }) => {
    if (kind === 'wav') save(sound.toBlob(), 'live.wav');
    else if (kind === 'txt') save(new Blob([text.lines], { type: 'text/plain' }), 'live.txt');
    else
      download(kind, text.segments, null, 'live').catch(({ message }) =>
        say(`The file could not be made: ${message}`),
      );
  });
}
