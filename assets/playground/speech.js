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

/** Fills the list of voices; a server that lists none leaves OpenAI's names. */
export async function fillVoices(select, note, client, { signal, served }) {
  const names = await served(() => client.voices(signal));
  select.replaceChildren(...(names ?? VOICES).map((name) => new Option(name, name)));
  note.hidden = names !== null;
}

/** Asks for the voices when a tab is opened, not with the page, because the question takes the slot. */
export async function openVoices(job, { voice, voiceNote }, client, hint) {
  if (voice.options.length > 0 || job.isRunning) return;
  await job.run(async (signal, served) => {
    await fillVoices(voice, voiceNote, client, { signal, served });
    job.say(hint);
  });
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
