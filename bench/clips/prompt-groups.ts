/** The groups of clips whose words `npm run bench -- accuracy` counts; each group is a row of its tables. */
import { publicClips } from './clips.ts';
import { DIALOG_LANGUAGES, dialogs } from './dialogs.ts';
import { hashOf, PROMPT_LANGUAGES, type Prompt, prompts, shuffled } from './prompts.ts';

/** The rows of these groups are also shown together, because they are of one kind. */
export const JUDGING_GROUPS: readonly string[] = PROMPT_LANGUAGES;

const READ_ALOUD = 'en, read aloud';

/** The language of each group. */
export const GROUPS: ReadonlyMap<string, string> = new Map([
  ...PROMPT_LANGUAGES.map((language) => [language, language] as const),
  [READ_ALOUD, 'en'] as const,
  ...DIALOG_LANGUAGES.map((language) => [language, language] as const),
]);

/** The clips of a group, always the same ones in the same order. None where the packages cannot be had. */
export function promptsOf(group: string): Prompt[] {
  if (group === READ_ALOUD) return readAloud();
  return DIALOG_LANGUAGES.some((language) => language === group) ? dialogs(group) : prompts(group);
}

function readAloud(): Prompt[] {
  return shuffled(
    publicClips().flatMap((clip) =>
      clip.text === null
        ? []
        : [{ ...clip, text: clip.text, group: READ_ALOUD, spoken: 'en', hash: hashOf('en', clip.name) }],
    ),
  );
}
