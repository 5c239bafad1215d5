/**
 * Voices of real people, from Debian packages: prompts of telephone exchanges, dialogues of a game, a book that is read
 * aloud, and words that volunteers recorded at home for children's programs. Each voice belongs to one half of the set,
 * so that no person who is heard while settings are tuned is heard again when they are judged.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, parse } from 'node:path';
import { publicClips } from '../../clips/clips.ts';
import { debianPackagePath } from '../../clips/debian-package.ts';
import { dialogFiles } from '../../clips/dialogs.ts';
import { isSpoken, promptFiles } from '../../clips/prompts.ts';

/** Something that one person says in one recording. */
export interface Utterance {
  /** Path of the recording. */
  audio: string;
  /** What is said; null where no text comes with it. */
  text: string | null;
}

export interface Voice {
  id: string;
  /** True for the half on which settings may be tuned. */
  tuning: boolean;
  /** True where the recording has nothing above 4 kHz, so that it would stand out among the others. */
  narrowBand: boolean;
  utterances: Utterance[];
}

type Source = readonly [id: string, half: 'tuning' | 'judged', utterances: () => Utterance[]];

const SOURCES: readonly Source[] = [
  // The Spanish prompts of this kind are left out, because the speaker of the English ones recorded them, too.
  ['allison', 'judged', () => prompts('en')],
  ['june', 'tuning', () => prompts('fr')],
  ['carlo', 'judged', () => prompts('it')],
  ['ivrvoice', 'tuning', () => prompts('ru')],
  ['librivox', 'judged', () => publicClips().filter(({ name }) => name.startsWith('librivox-'))],
  ['small-fish-cs', 'tuning', () => fish('cs', 'm')],
  ['big-fish-cs', 'tuning', () => fish('cs', 'v')],
  ['small-fish-nl', 'judged', () => fish('nl', 'm')],
  ['big-fish-nl', 'judged', () => fish('nl', 'v')],
  ['stamps-fr', 'judged', () => stamps('fr')],
  ['stamps-ru', 'judged', () => stamps('ru')],
  ['stamps-ro', 'tuning', () => stamps('ro')],
  ['stamps-ca', 'tuning', () => stamps('ca')],
  ['stamps-bg', 'judged', () => stamps('bg')],
  ['stamps-es', 'tuning', () => stamps('es')],
  ['stamps-be', 'tuning', () => stamps('be')],
  ['stamps-el', 'judged', () => stamps('el')],
  ['stamps-da', 'tuning', () => stamps('da')],
  ['potato-lt', 'judged', () => words('ktuberling-data', 'usr/share/ktuberling/sounds/lt')],
  ['potato-uk', 'tuning', () => words('ktuberling-data', 'usr/share/ktuberling/sounds/uk')],
];
const NARROW_SOURCES: readonly Source[] = [
  ['menardi', 'judged', () => words('asterisk-prompt-it-menardi-wav', 'usr/share/asterisk/sounds')],
  ['armelle', 'tuning', () => words('asterisk-prompt-fr-armelle', 'usr/share/asterisk/sounds')],
  ['es-co', 'judged', () => words('asterisk-prompt-es-co', 'usr/share/asterisk/sounds')],
];
const SOUND_FILES = /\.(ogg|wav|gsm)$/;

/** All voices of a half whose packages can be had, always in the same order. */
export function voices(half: { tuning: boolean }): Voice[] {
  const read = (sources: readonly Source[], narrowBand: boolean) =>
    sources
      .filter(([, name]) => (name === 'tuning') === half.tuning)
      .map(([id, , utterances]) => ({ id, ...half, narrowBand, utterances: utterances() }))
      .filter(({ utterances }) => utterances.length > 0);
  return [...read(SOURCES, false), ...read(NARROW_SOURCES, true)];
}

function prompts(language: string): Utterance[] {
  return promptFiles(language)
    .filter(({ text }) => isSpoken(text))
    .map(({ file, text }) => ({ audio: file, text }));
}

function fish(language: string, name: 'm' | 'v'): Utterance[] {
  return dialogFiles(language)
    .filter((dialog) => dialog.name.split('/')[1]?.split('-')[1] === name)
    .map(({ file, text }) => ({ audio: file, text }));
}

/** Names of pictures, of which a text file beside the sound has a line such as `fr.utf8=Un ours`. */
function stamps(language: string): Utterance[] {
  const folder = debianPackagePath('tuxpaint-stamps-default', 'usr/share/tuxpaint/stamps');
  const end = `_desc_${language}.ogg`;
  return filesBelow(folder)
    .filter((audio) => audio.endsWith(end))
    .map((audio) => ({ audio, text: textBeside(audio.slice(0, -end.length), language) }));
}

function textBeside(stem: string, language: string): string | null {
  try {
    const lines = readFileSync(`${stem}.txt`, 'utf8').split('\n');
    return (
      lines
        .find((line) => line.startsWith(`${language}.utf8=`))
        ?.slice(language.length + 6)
        .trim() || null
    );
  } catch {
    return null;
  }
}

function words(name: string, path: string): Utterance[] {
  return (
    filesBelow(debianPackagePath(name, path))
      .filter((audio) => SOUND_FILES.test(audio))
      // Some games have a click or a laugh among the words.
      .filter((audio) => !parse(audio).name.startsWith('silence'))
      .map((audio) => ({ audio, text: null }))
  );
}

function filesBelow(folder: string | null): string[] {
  if (folder === null) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}
