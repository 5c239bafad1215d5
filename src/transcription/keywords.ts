/** How a keyword may be spelled by a model that looks for it among its tokens. Pure. */

/** The most UTF-16 units of a spelling, which is three bytes for each in UTF-8 at most. */
const MAX_UNITS = 200;

/**
 * The keywords as they were written, in lower case, and with a capital at the beginning: a model writes a word in one
 * of these. The form is that in which vocabularies are trained (NFKC, single spaces). Keywords without a letter or a
 * digit, and those that grow longer than any of the field in this form, are left out.
 */
export function spellingsOf(keywords: readonly string[]): string[] {
  const spellings = keywords.flatMap((keyword) => {
    const text = written(keyword);
    const [first = ''] = text;
    return [text, text.toLowerCase(), first.toUpperCase() + text.slice(first.length)];
  });
  return [...new Set(spellings)].filter((text) => /[\p{L}\p{N}]/u.test(text) && text.length <= MAX_UNITS);
}

const written = (keyword: string) =>
  keyword
    .normalize('NFKC')
    .replace(/[\s▁]+/gu, ' ')
    .trim();
