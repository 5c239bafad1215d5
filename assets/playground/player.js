/** Plays the audio and draws its controls: play, speed, and a waveform that is a slider for mouse, touch and keys. */
import { shortTime } from './captions.js';
import { rememberSettings } from './settings.js';
import { shortSize } from './sizes.js';
import { decode } from './sound.js';
import { createWaveform } from './waveform.js';

const STEP_SEC = 5;

/** @param parts elements by name; @param onTime (sec), called while playing and after every jump */
export function createPlayer({ audio, wave, play, time, speed, note, name, facts }, onTime) {
  const waveform = createWaveform(wave.querySelector('canvas'));
  rememberSettings('voxgate-player', [speed]);
  let durationSec = 0;
  let url = null;
  let loads = 0;

  function show() {
    const sec = Math.min(audio.currentTime, durationSec || audio.currentTime);
    time.textContent = `${shortTime(sec)} / ${shortTime(durationSec)}`;
    wave.setAttribute('aria-valuenow', sec.toFixed(1));
    wave.setAttribute('aria-valuetext', `${shortTime(sec)} of ${shortTime(durationSec)}`);
    waveform.update({ atSec: sec });
    onTime(sec);
  }

  function setDuration(sec) {
    if (!Number.isFinite(sec) || sec <= 0) return;
    durationSec = sec;
    wave.setAttribute('aria-valuemax', sec.toFixed(1));
    waveform.update({ durationSec });
    show();
  }

  function seek(sec) {
    audio.currentTime = Math.max(0, Math.min(durationSec, sec));
    show();
  }

  function say(text) {
    note.textContent = text;
    note.hidden = text === '';
  }

  function each() {
    show();
    if (!audio.paused) requestAnimationFrame(each);
  }

  audio.addEventListener('play', () => {
    play.classList.add('playing');
    play.setAttribute('aria-label', 'Pause');
    each();
  });
  for (const event of ['pause', 'ended']) {
    audio.addEventListener(event, () => {
      play.classList.remove('playing');
      play.setAttribute('aria-label', 'Play');
    });
  }
  audio.addEventListener('loadedmetadata', () => {
    audio.playbackRate = Number(speed.value);
    if (durationSec === 0) setDuration(audio.duration);
  });
  audio.addEventListener('seeked', show);
  audio.addEventListener('error', () => {
    if (url === null) return;
    play.disabled = true;
    say('This browser cannot play this format, but the gateway may be able to read it.');
  });
  play.addEventListener('click', () => (audio.paused ? audio.play().catch(() => undefined) : audio.pause()));
  speed.addEventListener('change', () => {
    audio.playbackRate = Number(speed.value);
  });

  const seekTo = ({ clientX }) => {
    const { left, width } = wave.getBoundingClientRect();
    seek(((clientX - left) / width) * durationSec);
  };
  wave.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || durationSec === 0) return;
    wave.setPointerCapture(event.pointerId);
    seekTo(event);
  });
  wave.addEventListener('pointermove', (event) => {
    if (wave.hasPointerCapture(event.pointerId)) seekTo(event);
  });
  wave.addEventListener('keydown', (event) => {
    const now = audio.currentTime;
    const target = {
      ArrowRight: now + STEP_SEC,
      ArrowUp: now + STEP_SEC,
      ArrowLeft: now - STEP_SEC,
      ArrowDown: now - STEP_SEC,
      PageUp: now + 6 * STEP_SEC,
      PageDown: now - 6 * STEP_SEC,
      Home: 0,
      End: durationSec,
    }[event.key];
    if (event.key === ' ') play.click();
    else if (target !== undefined) seek(target);
    else return;
    event.preventDefault();
  });

  function empty(fileName) {
    loads += 1;
    audio.pause();
    if (url !== null) URL.revokeObjectURL(url);
    url = null;
    durationSec = 0;
    name.textContent = fileName;
    name.title = fileName;
    say('');
    waveform.setSamples(null);
    waveform.update({ spans: [], lanes: 1, live: null, durationSec: 0, atSec: 0 });
  }

  return {
    seek,
    playFrom(sec) {
      seek(sec);
      if (audio.paused) play.click();
    },
    toggle: () => play.click(),
    pause: () => audio.pause(),
    get durationSec() {
      return durationSec;
    },
    async load(file) {
      empty(file.name);
      const mine = loads;
      facts.textContent = shortSize(file.size);
      play.disabled = false;
      url = URL.createObjectURL(file);
      audio.src = url;
      show();
      const sound = await decode(file);
      if (mine !== loads) return;
      wave.classList.toggle('flat', sound === null);
      if (sound === null) {
        if (!play.disabled) say('This browser cannot decode this file, so there is no waveform.');
        return;
      }
      setDuration(sound.durationSec);
      waveform.setSamples(sound.samples);
    },
    /** Shows a file whose audio was not kept. */
    showName(fileName, why) {
      empty(fileName);
      facts.textContent = '';
      play.disabled = true;
      audio.removeAttribute('src');
      wave.classList.add('flat');
      say(why);
    },
    /** Shows the microphone's loudness so far, with one number for each bar. */
    showRecording(levels, sec) {
      audio.pause();
      name.textContent = 'Recording';
      facts.textContent = '';
      say('');
      play.disabled = true;
      wave.classList.remove('flat');
      time.textContent = shortTime(sec);
      waveform.update({ live: levels, spans: [], lanes: 1 });
    },
    /** Draws the known spans, `{start, end, lane, color}[]`, in this many lanes. */
    showSpans(spans, lanes) {
      waveform.update({ spans, lanes });
    },
    setDuration,
  };
}
