/** The speech tab: a text becomes sound, to listen to and to keep. */
import { fillModels } from './choices.js';
import { createJob } from './job.js';
import { save } from './take.js';

/** OpenAI's names, for a speech server that does not list its own. */
const VOICES = 'alloy ash ballad coral echo fable nova onyx sage shimmer verse'.split(' ');

const EXTENSIONS = {
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'audio/ogg': 'ogg',
  'audio/opus': 'opus',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
};

const KEY = 'voxgate-voices';
/** The time after which a busy gateway is asked for the voices again. */
const AGAIN_MS = 5000;

/** The names of the voices, null where the server lists none. They are asked for once in a tab of the browser. */
async function listed(client, signal) {
  const known = sessionStorage.getItem(KEY);
  if (known !== null) return JSON.parse(known);
  const names = await client.voices(signal);
  if (names !== null) sessionStorage.setItem(KEY, JSON.stringify(names));
  return names;
}

/** Fills the list of voices; a server that lists none leaves OpenAI's names. */
export async function fillVoices(select, note, client, { signal, served }) {
  const names = await served(() => listed(client, signal));
  select.replaceChildren(...(names ?? VOICES).map((name) => new Option(name, name)));
  note.hidden = names !== null;
}

/**
 * Asks for the voices when a tab is opened, not with the page, because the question takes the slot. The visitor has asked
 * for nothing yet, so a busy gateway is asked again later without a word.
 */
export async function openVoices(job, { voice, voiceNote }, client, hint) {
  if (voice.options.length > 0 || job.isRunning) return;
  job.say(hint);
  const { signal } = new AbortController();
  try {
    await fillVoices(voice, voiceNote, client, { signal, served: (attempt) => attempt() });
  } catch {
    setTimeout(() => {
      if (voice.offsetParent !== null) openVoices(job, { voice, voiceNote }, client, hint);
    }, AGAIN_MS);
  }
}

/** @param parts elements by name: form, model, voice, voiceNote, text, start, stop, status, problem, busy, result, audio, download */
export function createSpeech(parts, client) {
  const { form, model, voice, voiceNote, text, result, audio, download } = parts;
  const job = createJob(parts);
  let sound = null;
  let url = '';

  function keep(blob) {
    forget();
    sound = blob;
    url = URL.createObjectURL(blob);
    audio.src = url;
    result.hidden = false;
  }

  function forget() {
    result.hidden = true;
    audio.removeAttribute('src');
    audio.load();
    URL.revokeObjectURL(url);
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const input = text.value.trim();
    if (input === '' || job.isRunning) return;
    job.run(async (signal, served) => {
      forget();
      if (voice.options.length === 0) await fillVoices(voice, voiceNote, client, { signal, served });
      const request = { model: model.value, voice: voice.value, input };
      const blob = await served(() => {
        job.say('Making speech.');
        return client.speech(request, signal);
      });
      keep(blob);
      job.say('Done.');
      // A browser may refuse to play what was clicked for long ago; its controls are there.
      audio.play().catch(() => undefined);
    });
  });
  audio.addEventListener('error', () => {
    if (!result.hidden) job.say('This browser cannot play this format; it can be downloaded.');
  });
  download.addEventListener('click', () => {
    const type = sound.type.split(';')[0];
    save(sound, `speech.${EXTENSIONS[type] ?? 'audio'}`);
  });

  return {
    setModels: (list) => fillModels(model, list),
    open: () => openVoices(job, parts, client, 'Write something to begin.'),
  };
}
