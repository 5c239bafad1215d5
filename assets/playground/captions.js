/** Writes times and plain text for reading. */

/** The text in one piece, or with a line for each change of the speaker. */
export function toText(segments) {
  const parts = [];
  for (const { speaker, text } of segments) {
    const last = parts.at(-1);
    if (last?.speaker === speaker && last !== undefined) last.text += text;
    else parts.push({ speaker, text });
  }
  const said = parts.map(({ speaker, text }) => (speaker === undefined ? '' : `${speaker}: `) + text.trim());
  return `${said.join('\n')}\n`;
}

/** The whole text of a paragraph. @param field `text`, or `translation` */
export const joined = (paragraph, field = 'text') =>
  paragraph
    .map((segment) => segment[field])
    .join('')
    .replace(/\s+/g, ' ')
    .trim();

/** How long a paragraph may get before a new one begins, so that a reader finds their place again. */
const PARAGRAPH_SEC = 60;

/** Consecutive segments of one speaker and language, in pieces of about a minute. @returns {object[][]} */
export function toParagraphs(segments) {
  const paragraphs = [];
  for (const segment of segments) {
    if (goesOn(paragraphs.at(-1)?.[0], segment)) paragraphs.at(-1).push(segment);
    else paragraphs.push([segment]);
  }
  return paragraphs;
}

/** @param first the segment with which the paragraph begins */
export function goesOn(first, { speaker, language, start }) {
  if (first === undefined || first.speaker !== speaker || first.language !== language) return false;
  return start - first.start < PARAGRAPH_SEC;
}

/**
 * Where a part of a translation belongs: the row in whose time most of it lies, or the one before.
 * @param startOf (row) => seconds
 * @returns an index, which is -1 where there are no rows
 */
export function placeOf({ start, end }, rows, startOf = (row) => row.start) {
  const middle = (start + end) / 2;
  return Math.max(
    rows.length > 0 ? 0 : -1,
    rows.findLastIndex((row) => startOf(row) <= middle),
  );
}

/** Formats a time for reading, as `0:03` or `1:02:03`. */
export function shortTime(sec) {
  const whole = Math.max(0, Math.floor(sec));
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value) => String(value).padStart(2, '0');
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
