/** The voice tab: what is said is transcribed, answered by the chat model and spoken, until the visitor stops. */
import { answer, createConversation } from './chat.js';
import { fillModels } from './choices.js';
import { createJob } from './job.js';
import { whyNoMicrophone } from './microphone.js';
import { startRecording, whyNoRecording } from './recorder.js';
import { RequestFailed } from './request.js';
import { fillVoices, openVoices } from './speech.js';
import { createTurn } from './turn.js';

/** What a chat model needs to know of its listener. */
const SYSTEM = { role: 'system', content: 'Your answers are spoken aloud. Answer in a few short sentences.' };

/** @param parts elements by name: form, chatModel, speechModel, voice, voiceNote, start, stop, say, status, problem, busy, level, messages, audio */
export function createVoice(parts, client) {
  const { form, chatModel, speechModel, voice, voiceNote, say: sayButton, level, messages, audio } = parts;
  const job = createJob(parts);
  const conversation = createConversation(messages);

  /** @returns the file of one turn; null when nobody spoke */
  async function listen(signal) {
    const hear = createTurn();
    let silent = true;
    let recording = null;
    const end = () => recording?.stop();
    const enough = () => {
      silent = false;
      end();
    };
    recording = await startRecording((loudness, sec) => {
      level.value = loudness;
      const { spoken, over } = hear(loudness, sec);
      silent &&= !spoken;
      if (over) end();
    }).catch((error) => {
      throw new RequestFailed({ message: whyNoMicrophone(error) });
    });
    signal.addEventListener('abort', end);
    sayButton.addEventListener('click', enough);
    level.hidden = false;
    sayButton.hidden = false;
    job.say('Listening. Pause when you have finished.');
    try {
      if (signal.aborted) end();
      const file = await recording.file;
      signal.throwIfAborted();
      return silent ? null : file;
    } finally {
      signal.removeEventListener('abort', end);
      sayButton.removeEventListener('click', enough);
      if (document.activeElement === sayButton) parts.stop.focus();
      level.hidden = true;
      sayButton.hidden = true;
    }
  }

  async function transcribe(file, { signal, served }) {
    let text = '';
    const fields = [
      ['model', 'auto'],
      ['stream', 'true'],
    ];
    await served(() => {
      job.say('Transcribing.');
      return client.transcribe(file, fields, signal, (event) => {
        if (event.type === 'transcript.text.done') text = event.text.trim();
      });
    });
    return text;
  }

  async function speak(input, { signal, served }) {
    const request = { model: speechModel.value, voice: voice.value, input };
    const sound = await served(() => {
      job.say('Making speech.');
      return client.speech(request, signal);
    });
    job.say('Speaking.');
    await play(sound, signal);
  }

  /** Resolves at the end of the sound. */
  async function play(sound, signal) {
    const url = URL.createObjectURL(sound);
    audio.src = url;
    const stop = () => audio.pause();
    signal.addEventListener('abort', stop);
    const over = new AbortController();
    const once = { signal: over.signal };
    try {
      await new Promise((resolve, reject) => {
        const failed = () => reject(new RequestFailed({ message: 'This browser cannot play the speech.' }));
        for (const event of ['ended', 'pause']) audio.addEventListener(event, resolve, once);
        audio.addEventListener('error', failed, once);
        audio.play().catch(failed);
        if (signal.aborted) resolve();
      });
      signal.throwIfAborted();
    } finally {
      over.abort();
      signal.removeEventListener('abort', stop);
      URL.revokeObjectURL(url);
    }
  }

  async function converse(signal, served) {
    if (voice.options.length === 0) await fillVoices(voice, voiceNote, client, { signal, served });
    for (;;) {
      const file = await listen(signal);
      if (file === null) return job.say('Nobody spoke, so the microphone is off.');
      const heard = await transcribe(file, { signal, served });
      if (heard === '') continue;
      const reply = await answer(
        client,
        { model: chatModel.value, conversation, content: heard, before: [SYSTEM] },
        { signal, served },
        job.say,
      );
      if (reply.trim() !== '') await speak(reply, { signal, served });
    }
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (!job.isRunning) job.run(converse);
  });
  const why = whyNoRecording();
  if (why !== null) {
    parts.start.disabled = true;
    job.say(why);
  }

  return {
    open: () => openVoices(job, { voice, voiceNote }, client, 'Start, and say something.'),
    setModels(chat, speech) {
      fillModels(chatModel, chat);
      fillModels(speechModel, speech);
    },
  };
}
