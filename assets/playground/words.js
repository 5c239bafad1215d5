/** Gives the words of a segment with times: the gateway's own where it measured them, else estimated ones. */

const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Spreads a segment's time over its words in proportion to their length. */
export function estimateWords({ text, start, end }) {
  const pieces = split(text);
  const total = pieces.reduce((sum, piece) => sum + piece.trim().length, 0);
  let spoken = 0;
  const at = () => start + ((end - start) * spoken) / Math.max(1, total);
  return pieces.map((piece) => {
    const from = at();
    spoken += piece.trim().length;
    return { text: piece, start: from, end: at() };
  });
}

/** Finds the words of the whole answer in the texts of its segments. */
export function placeWords(segments, words) {
  let next = 0;
  return segments.map((segment) => {
    while (next < words.length && words[next].start < segment.start - 0.002) next++;
    const placed = [];
    let at = 0;
    for (; next < words.length; next++) {
      const { word, start, end } = words[next];
      const found = segment.text.indexOf(word, at);
      if (found < 0 || segment.text.slice(at, found).trim() !== '') break;
      placed.push({ text: segment.text.slice(at, found + word.length), start, end, measured: words[next] });
      at = found + word.length;
    }
    if (segment.text.slice(at).trim() === '' && placed.length > 0) return placed;
    return estimateWords(segment);
  });
}

function split(text) {
  if (!UNSPACED.test(text)) return text.match(/\s*\S+/g) ?? [];
  const pieces = [];
  for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: 'word' }).segment(
    text,
  )) {
    if (isWordLike || pieces.length === 0) pieces.push(segment);
    else pieces[pieces.length - 1] += segment;
  }
  return pieces;
}

/**
 * The words of a text that was edited: those at both ends that stayed keep their times, and what is new between them
 * shares the time of what it replaces.
 */
export function reword(pieces, text, segment) {
  const next = split(text);
  const same = (a, b) => a.text.trim() === b.trim();
  const most = Math.min(pieces.length, next.length);
  let head = 0;
  while (head < most && same(pieces[head], next[head])) head++;
  let tail = 0;
  while (tail < most - head && same(pieces.at(-1 - tail), next.at(-1 - tail))) tail++;
  const start = pieces[head - 1]?.end ?? segment.start;
  const end = pieces[pieces.length - tail]?.start ?? segment.end;
  const between = next.slice(head, next.length - tail).join('');
  const kept = (piece, i) => ({ ...piece, text: next[i] });
  return [
    ...pieces.slice(0, head).map(kept),
    ...estimateWords({ text: between, start, end: Math.max(start, end) }),
    ...pieces.slice(pieces.length - tail).map((piece, i) => kept(piece, next.length - tail + i)),
  ];
}

/** The text of words as a page shows it: one space at most between two. */
export function shownText(pieces) {
  return pieces.map(({ text }, i) => (i > 0 && /^\s/.test(text) ? ' ' : '') + text.trim()).join('');
}
