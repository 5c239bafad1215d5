/** This is the playground: it tries what the gateway can do, with the gateway's own API. */
import { createKeyDialog } from './key-dialog.js';
import { createChat } from './playground/chat.js';
import { createModelChoice } from './playground/choices.js';
import { createCode } from './playground/code.js';
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

let code = null;
const showCode = () => code?.show();

const transcription = createTranscription(client, {
  chosen: showCode,
  file: () => tabs.select('transcription'),
  done: refreshModels,
});
const liveChoice = createModelChoice(partsOf('live', 'model language note'));
createLive(
  {
    button: el('live'),
    ...partsOf('live', 'label stop pause copy exports sound clear box status problem why again'),
    ...partsOf('live', 'meter level clock soundNote microphoneField microphone text finals partials'),
  },
  liveChoice.read,
  client.models,
);
const speech = createSpeech(
  partsOf(
    'speech',
    'form model voice voiceNote format formatNote speed text start stop pause status problem busy result audio download',
  ),
  client,
);

const chat = createChat(
  partsOf(
    'chat',
    'form model text system temperature maxTokens start stop again editing leave status problem busy messages',
  ),
  client,
);

const voice = createVoice(
  partsOf(
    'voice',
    'form chatModel voice voiceNote mode instructions tools microphoneField microphone start stop hold interrupt ' +
      'clear status problem busy level hearing messages',
  ),
  client,
);

code = createCode(partsOf('code', 'card text curlName copy note'), {
  transcription: transcription.code,
  live: liveChoice.read,
  speech: speech.code,
  chat: chat.code,
  voice: voice.code,
});

/** The tabs that have something to do when they are opened and can serve. */
const opening = { speech, chat, voice };
const tabs = createTabs(el('tabs'), el('missing'), {
  onSelect: code.open,
  onServe: (name) => opening[name]?.open(),
});

async function refreshModels() {
  try {
    const list = await client.models();
    const able = (capability) => list.filter(({ capabilities }) => capabilities.includes(capability));
    transcription.setModels(able('asr'));
    liveChoice.setModels(able('asr'));
    speech.setModels(able('tts'));
    chat.setModels(able('llm'));
    voice.setModels(able('llm'));
    tabs.offer(new Set(list.flatMap(({ capabilities }) => capabilities)));
  } catch (error) {
    transcription.say(`The models cannot be listed: ${error.message}`);
  }
  showCode();
}

refreshModels();
