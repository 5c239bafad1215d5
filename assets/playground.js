/** This is the playground: it tries what the gateway can do, with the gateway's own API. */
import { createKeyDialog } from './key-dialog.js';
import { createChat } from './playground/chat.js';
import { createModelChoice } from './playground/choices.js';
import { createLive } from './playground/live.js';
import { createClient } from './playground/request.js';
import { createSpeech } from './playground/speech.js';
import { createTabs } from './playground/tabs.js';
import { createTranscription } from './playground/transcription.js';
import { createVoice } from './playground/voice.js';

const el = (id) => document.getElementById(id);

/** The elements of a tab by name: `voiceNote` of `speech` is `#speech-voice-note`. */
function partsOf(tab, names) {
  const id = (name) => `${tab}-${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  return Object.fromEntries(names.split(' ').map((name) => [name, el(id(name))]));
}

const client = createClient(
  createKeyDialog({
    dialog: el('key-dialog'),
    input: el('key'),
    wrong: el('key-wrong'),
    cancel: el('key-cancel'),
  }),
);

const transcription = createTranscription(client, {
  file: () => tabs.select('transcription'),
  done: refreshModels,
});
const liveChoice = createModelChoice(partsOf('live', 'model language note'));
createLive(
  {
    button: el('live'),
    ...partsOf('live', 'label stop copy box status problem text finals partials'),
  },
  liveChoice.read,
  client.models,
);
const speech = createSpeech(
  partsOf('speech', 'form model voice voiceNote text start stop status problem busy result audio download'),
  client,
);

const chat = createChat(
  partsOf('chat', 'form model text start stop again status problem busy messages'),
  client,
);

const voice = createVoice(
  partsOf(
    'voice',
    'form chatModel speechModel voice voiceNote start stop say status problem busy level messages audio',
  ),
  client,
);

/** The tabs that have something to do when they are opened. */
const opening = { speech, voice };
const tabs = createTabs(el('tabs'), el('missing'), (name) => opening[name]?.open());

async function refreshModels() {
  try {
    const list = await client.models();
    const able = (capability) => list.filter(({ capabilities }) => capabilities.includes(capability));
    transcription.setModels(able('asr'));
    liveChoice.setModels(able('asr'));
    speech.setModels(able('tts'));
    chat.setModels(able('llm'));
    voice.setModels(able('llm'), able('tts'));
    tabs.offer(new Set(list.flatMap(({ capabilities }) => capabilities)));
  } catch (error) {
    transcription.say(`The models cannot be listed: ${error.message}`);
  }
  transcription.showCode();
}

refreshModels();
