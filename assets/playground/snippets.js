/** Shows the current choices of a tab as code that sends the very request this page would send. */
import { CHAT } from './chat-snippets.js';
import { LIVE } from './live-snippets.js';
import { SPEECH } from './speech-snippets.js';
import { TRANSCRIPTION } from './transcription-snippets.js';
import { VOICE } from './voice-snippets.js';

/** By tab, and by the language of the code. */
export const SNIPPETS = {
  transcription: TRANSCRIPTION,
  live: LIVE,
  speech: SPEECH,
  chat: CHAT,
  voice: VOICE,
};
