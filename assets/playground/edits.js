/** The segments of a text with their words, and what a reader changes in them. Every change can be undone. */
import { estimateWords, placeWords, reword, shownText } from './words.js';

/** The oldest changes are forgotten beyond this. */
const MOST_STEPS = 200;

export function createEdits() {
  /** Holds `{segment, pieces, original}`; `original` is what the gateway wrote, where it was changed. */
  let items = [];
  /** Holds lists of `[index, item before]`. */
  let steps = [];

  function change(i, text) {
    const { segment, pieces, original } = items[i];
    const before = items[i];
    const shown = text.replace(/\s+/g, ' ').trim();
    if (shown === shownText(pieces)) return null;
    const [space] = segment.text.match(/^\s*/);
    items[i] = {
      segment: { ...segment, text: shown === '' ? '' : space + shown },
      pieces: reword(pieces, shown === '' ? '' : space + shown, segment),
      original: original ?? { segment, pieces },
    };
    if (shown === shownText(items[i].original.pieces)) restoreAt(i);
    return [i, before];
  }

  function restoreAt(i) {
    items[i] = { ...items[i].original, original: null };
  }

  function keep(step) {
    if (step.length > 0) steps = [...steps, step].slice(-MOST_STEPS);
    return step.map(([i]) => i);
  }

  return {
    get segments() {
      return items.map(({ segment }) => segment);
    },
    get count() {
      return items.length;
    },
    get canUndo() {
      return steps.length > 0;
    },
    get isEdited() {
      return items.some(({ original }) => original !== null);
    },
    segmentAt: (i) => items[i].segment,
    piecesAt: (i) => items[i].pieces,
    originalAt: (i) => items[i].original,
    textAt: (i) => shownText(items[i].pieces),
    add(segment) {
      items.push({ segment, pieces: estimateWords(segment), original: null });
    },
    /** @param words of the whole answer, where they were measured */
    set(segments, words) {
      const placed = words === undefined ? segments.map(estimateWords) : placeWords(segments, words);
      items = segments.map((segment, i) => ({ segment, pieces: placed[i], original: null }));
      steps = [];
    },
    /** The text of the gateway gets more fields with its last event, while the words stay as they are. */
    describe(segments) {
      items = items.map((item, i) => ({ ...item, segment: segments[i] }));
    },
    /** Changes texts in one step. @param changes `[index, text][]` @returns the indexes that changed */
    change: (changes) => keep(changes.map(([i, text]) => change(i, text)).filter((one) => one !== null)),
    /** Takes back all that was changed in a segment, which can be undone, too. */
    restore(i) {
      const before = items[i];
      restoreAt(i);
      return keep([[i, before]]);
    },
    /** Takes back the last step. @returns the indexes that changed */
    undo() {
      const step = steps.at(-1) ?? [];
      steps = steps.slice(0, -1);
      for (const [i, before] of step.toReversed()) items[i] = before;
      return step.map(([i]) => i);
    },
    /** The answer of the gateway with the texts as they are now. */
    applied(answer) {
      if (answer === null || !items.some(({ original }) => original !== null)) return answer;
      const segments = items.map(({ segment, original }) =>
        original === null ? segment : { ...segment, edited: true },
      );
      const text = segments
        .map((segment) => segment.text)
        .join('')
        .trim();
      const words = items.flatMap(({ segment: { speaker }, pieces }) =>
        pieces.map(
          ({ text: word, start, end, measured }) =>
            measured ?? { word: word.trim(), start, end, ...(speaker !== undefined && { speaker }) },
        ),
      );
      return { ...answer, text, segments, ...(answer.words !== undefined && { words }) };
    },
  };
}
