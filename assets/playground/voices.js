/** The voices of the speech server: which it has, in which languages, and how they are offered. */
import { recall } from './remembered.js';
import { inTab } from './storage.js';

/** OpenAI's names, for a speech server that does not list its own. */
const OPENAI = 'alloy ash ballad coral echo fable nova onyx sage shimmer verse'.split(' ');

const KEY = 'voxgate-voice-list';
/** The time after which a busy gateway is asked for the voices again. */
const AGAIN_MS = 5000;
const OTHER = 'Other voices';

/** Kokoro's voices begin with a letter for the language and one for the sex. */
const KOKORO = { a: 'en', b: 'en', e: 'es', f: 'fr', h: 'hi', i: 'it', j: 'ja', p: 'pt', z: 'zh' };

const names = new Intl.DisplayNames(undefined, { type: 'language', fallback: 'none' });

/** The language of `en-US` and of `en_GB` is English. @returns undefined for what is no language */
function languageName(code) {
  try {
    return names.of(String(code).split(/[-_]/)[0]);
  } catch {
    return undefined;
  }
}

/** Piper and others name voices by a locale (`en_US-lessac-medium`), and espeak by nothing else. */
function codeIn(name) {
  const kokoro = /^([abefhijpz])[fm]_/.exec(name);
  if (kokoro !== null) return KOKORO[kokoro[1]];
  return /^[a-z]{2}([-_][A-Z]{2}(?=$|[-_])|([-_][a-z]+)*$)/.exec(name)?.[0];
}

/** @param voice a name, or an object with one @returns {name, group} */
function read(voice) {
  const object = typeof voice === 'object' && voice !== null ? voice : { name: voice };
  const name = String(object.name ?? object.id ?? object.voice_id ?? '');
  const said = object.language ?? object.lang ?? object.locale ?? object.languages?.[0];
  const code = said ?? codeIn(name);
  return { name, group: languageName(code) ?? (typeof said === 'string' && said !== '' ? said : OTHER) };
}

/** @returns {[group: string, names: string[]][]}: the reader's own language first, and what has none last */
function grouped(voices) {
  const groups = new Map();
  for (const { name, group } of voices.map(read)) {
    if (name === '') continue;
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(name);
  }
  const own = languageName(navigator.language);
  const rank = (group) => (group === OTHER ? 2 : group === own ? 0 : 1);
  return [...groups].sort(([a], [b]) => rank(a) - rank(b) || a.localeCompare(b));
}

/** What the server lists, null where it lists none. It is asked once in a tab of the browser. */
async function listed(client, signal) {
  const known = inTab.get(KEY);
  if (known !== null) return JSON.parse(known);
  const voices = await client.voices(signal);
  if (voices !== null) inTab.set(KEY, JSON.stringify(voices));
  return voices;
}

/** Fills the list of voices; a server that lists none leaves OpenAI's names. */
export async function fillVoices(select, note, client, { signal, served }) {
  const voices = await served(() => listed(client, signal));
  const options = (list) => list.map((name) => new Option(name, name));
  const groups = grouped(voices ?? OPENAI);
  select.replaceChildren(
    ...(groups.length === 1
      ? options(groups[0][1])
      : groups.map(([label, list]) => {
          const group = document.createElement('optgroup');
          group.label = label;
          group.append(...options(list));
          return group;
        })),
  );
  note.hidden = voices !== null;
  const last = recall('speech').voice;
  if ([...select.options].some(({ value }) => value === last)) select.value = last;
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
    // The code shows the voice.
    voice.dispatchEvent(new Event('change', { bubbles: true }));
  } catch {
    setTimeout(() => {
      if (voice.offsetParent !== null) openVoices(job, { voice, voiceNote }, client, hint);
    }, AGAIN_MS);
  }
}
