/** The speech tab: a text becomes sound, to listen to while it comes, and to keep. */
import { fillModels } from './choices.js';
import { createJob } from './job.js';
import { takesPieces } from './piece-player.js';
import { recall, remember } from './remembered.js';
import { createStreamPlayer } from './streaming.js';
import { save } from './take.js';
import { fillVoices, openVoices } from './voices.js';

const EXTENSIONS = {
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/ogg': 'ogg',
  'audio/opus': 'opus',
  'audio/webm': 'webm',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
  'audio/pcm': 'pcm',
};

/** The types of the formats that some browsers play as they come. */
const TYPES = { mp3: 'audio/mpeg', opus: 'audio/ogg', flac: 'audio/flac', aac: 'audio/aac' };

const nameOf = ({ type }) => `speech.${EXTENSIONS[type] ?? 'audio'}`;

/** Says when sound began and when all of it was there; both count from the request that was served. */
function createTimes() {
  const startedAt = performance.now();
  const said = [];
  const after = (at) => `${((at - startedAt) / 1000).toFixed(1)} s`;
  return {
    first: (at) => said.unshift(`first sound after ${after(at)}`),
    whole: () => said.push(`complete after ${after(performance.now())}`),
    toString: () => said.join(', '),
  };
}

/**
 * @param parts elements by name: form, model, voice, voiceNote, format, formatNote, speed, text, start, stop, pause,
 *   status, problem, busy, result, audio, download
 */
export function createSpeech(parts, client) {
  const { form, model, voice, voiceNote, format, formatNote, speed, text } = parts;
  const { result, audio, download, pause } = parts;
  const job = createJob(parts);
  const player = createStreamPlayer(audio, showPause);
  let sound = null;
  /** What the page says while sound is heard. */
  let saying = '';

  function say(words) {
    saying = words;
    job.say(words);
  }

  function showPause(isPaused) {
    if (pause.hidden) return;
    pause.textContent = isPaused ? 'Resume' : 'Pause';
    job.say(isPaused ? 'Paused.' : saying);
  }

  /** A button that goes would take the keyboard with it. */
  function hidePause() {
    const hadFocus = document.activeElement === pause;
    pause.hidden = true;
    if (hadFocus) parts.stop.focus();
  }

  function describeFormat() {
    const type = TYPES[format.value];
    formatNote.hidden = type === undefined || takesPieces(type);
    formatNote.textContent = `This browser plays ${format.value} only once all of it is there.`;
  }

  /** What the server decides by itself is not sent. */
  function read() {
    return {
      model: model.value,
      voice: voice.value,
      input: text.value.trim(),
      ...(format.value !== '' && { response_format: format.value }),
      ...(speed.valueAsNumber !== 1 && { speed: speed.valueAsNumber }),
    };
  }

  function restore() {
    const last = recall('speech');
    if ([...format.options].some(({ value }) => value === last.format)) format.value = last.format;
    if (last.speed > 0) speed.value = last.speed;
    describeFormat();
  }

  async function speak(request, { signal, served }) {
    let times = null;
    const answer = await served(() => {
      audio.pause(); // the sound before, which stays on the page until the new one has come
      job.say('Generating speech.');
      times = createTimes();
      return client.speech(request, signal);
    });
    result.hidden = true;
    download.hidden = true;
    await player.play(answer, signal, {
      first(at) {
        times.first(at);
        result.hidden = !audio.hasAttribute('src'); // bare samples play without the element
        pause.hidden = false;
        pause.textContent = 'Pause';
        say(`Speaking: ${times}.`);
      },
      arrived(blob, isWhole) {
        sound = blob;
        result.hidden = false;
        download.hidden = false;
        if (isWhole) times.whole();
        saying = isWhole ? `Speaking: ${times}.` : 'The connection broke; this plays what had arrived.';
        if (pause.textContent === 'Pause') job.say(saying);
      },
    });
    const cannot = 'This browser cannot play this format, but you can download it';
    job.say(audio.error === null ? `Done: ${times}.` : `${cannot} (${times}).`);
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (text.value.trim() === '' || job.isRunning) return;
    job.run(async (signal, served) => {
      if (voice.options.length === 0) await fillVoices(voice, voiceNote, client, { signal, served });
      remember('speech', {
        model: model.value,
        voice: voice.value,
        format: format.value,
        speed: speed.valueAsNumber,
      });
      await speak(read(), { signal, served }).finally(hidePause);
    });
  });
  pause.addEventListener('click', player.toggle);
  format.addEventListener('input', describeFormat);
  download.addEventListener('click', () => {
    save(sound, nameOf(sound));
  });
  restore();

  return {
    setModels(list) {
      const isFirst = model.options.length === 0;
      fillModels(model, list);
      const last = recall('speech').model;
      if (isFirst && list.some(({ id }) => id === last)) model.value = last;
    },
    open: () => openVoices(job, parts, client, 'Write something to begin.'),
    code() {
      const { input, ...request } = read();
      // The last sound tells what the server sends by itself; OpenAI's default is mp3.
      const name = format.value === '' && sound !== null ? nameOf(sound) : `speech.${format.value || 'mp3'}`;
      return {
        request: { ...request, input: input || 'Hello!' },
        fileName: name,
      };
    },
  };
}
