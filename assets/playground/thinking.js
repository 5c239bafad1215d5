/** Tells what a model thinks aloud from what it answers. */

const OPEN = '<think>';
const CLOSE = '</think>';
/** Some templates write the first mark into the prompt, so that only the second comes. */
const CLOSE_ALONE = /^[ \t]*<\/think>[ \t]*$/m;

/**
 * @param isWhole false while the text may still grow, when its first characters may be a mark that is not complete
 * @returns {{thought: string, said: string}}
 */
export function splitThinking(text, isWhole) {
  const start = text.trimStart();
  if (!isWhole && start.length < OPEN.length && OPEN.startsWith(start)) return { thought: '', said: '' };
  if (start.startsWith(OPEN)) {
    const end = start.indexOf(CLOSE);
    if (end < 0) return { thought: start.slice(OPEN.length).trim(), said: '' };
    return {
      thought: start.slice(OPEN.length, end).trim(),
      said: start.slice(end + CLOSE.length).trimStart(),
    };
  }
  const alone = CLOSE_ALONE.exec(text);
  if (alone === null) return { thought: '', said: text };
  const said = text.slice(alone.index + alone[0].length).trimStart();
  return { thought: text.slice(0, alone.index).trim(), said };
}
