/**
 * Dialogues of a game, spoken by actors in Czech and Dutch, with their texts: Debian's fillets-ng-data-*. They are
 * livelier than prompts of a telephone exchange, and their languages are harder for a small model.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { debianPackagePath } from './debian-package.ts';
import { hashOf, isSentence, type Prompt, promptsFrom, type Recording } from './prompts.ts';

export const DIALOG_LANGUAGES = ['cs', 'nl'] as const;

const GAME = 'usr/share/games/fillets-ng';
/** There are more than a thousand; this many are as exact as the prompts of one language. */
const MOST = 200;

export function dialogs(language: string): Prompt[] {
  const hash = ({ name }: Recording) => hashOf(language, name);
  const chosen = dialogFiles(language)
    .filter(({ text }) => isSentence(text.replaceAll('?', '')))
    .toSorted((a, b) => (hash(a) < hash(b) ? -1 : 1))
    .slice(0, MOST);
  return promptsFrom('dialog', language, chosen);
}

/** Every line of the game that was recorded. The middle of its name says who speaks: `bot-m-vidis` is the small fish. */
export function dialogFiles(language: string): Recording[] {
  const texts = debianPackagePath('fillets-ng-data', `${GAME}/script`);
  const sounds = debianPackagePath(`fillets-ng-data-${language}`, `${GAME}/sound`);
  if (texts === null || sounds === null) return [];
  return readdirSync(sounds).flatMap((level) => dialogsOf(level, { language, texts, sounds }));
}

interface Folders {
  language: string;
  texts: string;
  sounds: string;
}

function dialogsOf(level: string, { language, texts, sounds }: Folders) {
  const folder = join(texts, level);
  if (!existsSync(folder)) return [];
  const lists = readdirSync(folder).filter((name) => name.endsWith(`dialogs_${language}.lua`));
  return lists.flatMap((list) =>
    textsOf(readFileSync(join(folder, list), 'utf8')).flatMap(({ name, text }) => {
      const file = join(sounds, level, language, `${name}.ogg`);
      // The same name is used in several levels.
      return existsSync(file) ? [{ name: `${level}/${name}`, file, text }] : [];
    }),
  );
}

/** Reads pairs of lines such as `dialogId("bot-m-vidis", …)` and `dialogStr("Zie je dat zeepaardje?")`. */
function textsOf(list: string): { name: string; text: string }[] {
  const pairs = list.matchAll(/dialogId\("([\w-]+)".*\)\s*dialogStr\("((?:[^"\\]|\\.)*)"\)/g);
  return [...pairs].map(([, name = '', text = '']) => ({ name, text: text.replaceAll('\\"', '"') }));
}
