/** Shows the text on the page: paragraphs that grow as segments arrive, and words that light up with the sound. */
import { goesOn, shortTime } from './captions.js';
import { createEdits } from './edits.js';
import { createFollowing } from './following.js';

/** A player that has been sent to a moment reports a time that is slightly less. */
const ROUNDED_SEC = 0.005;

/** The last word stays lit between two words, because the eye would see a flicker otherwise. */
const HOLD_SEC = 0.3;

/**
 * @param speakers gives names and colors to labels
 * @param onChange () => void, after the text of a segment was changed or undone
 * @param onFinish () => void, when a whole answer is shown
 */
export function createTranscript(box, list, speakers, onChange, onFinish) {
  const edits = createEdits();
  /** Holds the element of each segment. */
  let saids = [];
  /** Holds the segment with which the last paragraph begins. */
  let first;
  /** Holds the words in order, made anew when it is asked for after a change. */
  let index = null;
  let nowWord = null;
  let nowSaid = null;
  const following = createFollowing(box);

  function draw(i, isNew) {
    const segment = edits.segmentAt(i);
    const said = document.createElement('span');
    said.className = isNew ? 'said new' : 'said';
    said.dir = 'auto';
    said.dataset.index = i;
    fill(said, i);
    saids.push(said);
    // Without speakers each segment is a row, as its time is what a reader looks for.
    if (segment.speaker !== undefined && goesOn(first, segment))
      list.lastElementChild.querySelector('.text').append(' ', said);
    else startParagraph(segment).append(said);
  }

  function startParagraph(segment) {
    first = segment;
    const row = document.createElement('li');
    row.className = 'segment';
    row.dataset.start = segment.start;
    const when = document.createElement('button');
    when.type = 'button';
    when.className = 'when';
    // The words are the way of the keyboard: thousands of times to tab through would be none.
    when.tabIndex = -1;
    when.dataset.start = segment.start;
    when.textContent = shortTime(segment.start);
    when.setAttribute('aria-label', `Play from ${shortTime(segment.start)}`);
    const text = document.createElement('p');
    text.className = 'text';
    row.append(when);
    if (segment.speaker !== undefined) row.append(nameTag(segment.speaker));
    row.append(text);
    list.append(row);
    return text;
  }

  function fill(said, i) {
    const nodes = edits.piecesAt(i).flatMap((piece, n) => {
      const word = document.createElement('span');
      word.className = 'word';
      word.textContent = piece.text.trim();
      return n > 0 && /^\s/.test(piece.text) ? [' ', word] : [word];
    });
    said.replaceChildren(...nodes);
    index = null;
  }

  function nameTag(label) {
    const tag = document.createElement('b');
    tag.className = `who speaker-${speakers.colorOf(label)}`;
    tag.dataset.speaker = label;
    tag.textContent = speakers.nameOf(label);
    return tag;
  }

  function empty() {
    saids = [];
    first = undefined;
    index = null;
    nowWord = null;
    nowSaid = null;
    list.replaceChildren();
  }

  function redraw(changed) {
    for (const i of changed) {
      fill(saids[i], i);
      mark(i);
    }
    if (changed.length > 0) onChange(changed);
    return changed;
  }

  /** Says that a segment was edited, and offers what the gateway wrote. */
  function mark(i) {
    const next = saids[i].nextElementSibling;
    if (next?.classList.contains('edited')) next.remove();
    if (edits.originalAt(i) === null) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'edited';
    button.dataset.restore = i;
    button.textContent = 'edited';
    const { start, text } = edits.originalAt(i).segment;
    button.title = `Restore: ${text.trim()}`;
    button.setAttribute('aria-label', `Edited at ${shortTime(start)}: restore the original`);
    saids[i].after(button);
  }

  function words() {
    index ??= saids.flatMap((said, i) => {
      const elements = said.querySelectorAll('.word');
      return edits.piecesAt(i).map(({ start, end }, n) => ({ start, end, element: elements[n] }));
    });
    return index;
  }

  return {
    edits,
    saidAt: (i) => saids[i],
    get segments() {
      return edits.segments;
    },
    clear() {
      empty();
      edits.set([]);
      following.reset();
      list.removeAttribute('lang');
    },
    /** Shows one segment of a stream. */
    add(segment) {
      edits.add(segment);
      draw(edits.count - 1, true);
      following.grown();
    },
    /** Shows the finished answer; a stream that already showed the same text is left alone. */
    finish(answer) {
      const textOf = (segments) => segments.map(({ text }) => text.trim()).join('\n');
      const languages = new Set(answer.segments.map(({ language }) => language));
      if (
        answer.words === undefined &&
        languages.size < 2 &&
        textOf(edits.segments) === textOf(answer.segments)
      )
        edits.describe(answer.segments);
      else {
        empty();
        edits.set(answer.segments, answer.words);
        for (const i of answer.segments.keys()) draw(i, false);
        if (languages.size > 1) showLanguages(answer.segments, saids);
      }
      onFinish();
    },
    /** Shows the names that the speakers have now. */
    rename() {
      for (const tag of list.querySelectorAll('.who')) tag.textContent = speakers.nameOf(tag.dataset.speaker);
    },
    setLanguage(code) {
      list.lang = code;
    },
    change: (changes) => redraw(edits.change(changes)),
    undo: () => redraw(edits.undo()),
    restore: (i) => redraw(edits.restore(i)),
    /** When a word is said, in seconds. */
    startOf: (word) => words().find(({ element }) => element === word)?.start ?? 0,
    /** Highlights what is said at this moment of the audio. */
    follow(playedSec) {
      const sec = playedSec + ROUNDED_SEC;
      const word = at(words(), sec, HOLD_SEC)?.element ?? null;
      if (word !== nowWord) {
        nowWord?.classList.remove('now');
        word?.classList.add('now');
        nowWord = word;
      }
      const said = word?.parentElement ?? null;
      if (said === nowSaid) return;
      nowSaid?.classList.remove('now');
      said?.classList.add('now');
      nowSaid = said;
      if (said !== null) reveal(box, said);
    },
  };
}

/** Names the language of a segment where it is another than before. */
function showLanguages(segments, saids) {
  let before;
  for (const [i, { language, language_code: code }] of segments.entries()) {
    saids[i].lang = code ?? '';
    if (language === before || language === undefined) continue;
    before = language;
    const name = document.createElement('span');
    name.className = 'badge language';
    name.textContent = language;
    saids[i].before(name, ' ');
  }
}

/** Heights of distant rows are estimates; once drawn they settle within this many frames. */
const SETTLING_FRAMES = 10;

/** Scrolls the box, never the page. @param target an element, or a range of text */
export function reveal(box, target, frames = 0) {
  const { top, bottom } = target.getBoundingClientRect();
  const frame = box.getBoundingClientRect();
  const isInView = top >= frame.top && bottom <= frame.bottom;
  if (top === bottom || (isInView && frames === 0)) return;
  const by = top - frame.top - 8;
  const isFar = frames > 0 || Math.abs(by) > frame.height;
  if (!isInView) box.scrollBy({ top: by, behavior: isFar ? 'instant' : 'auto' });
  if (isFar && frames < SETTLING_FRAMES) requestAnimationFrame(() => reveal(box, target, frames + 1));
}

/** Finds the last item that has begun, if it has not ended or ended less than `holdSec` ago. */
function at(list, sec, holdSec) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].start <= sec) low = middle + 1;
    else high = middle;
  }
  const found = list[low - 1];
  return found !== undefined && sec < found.end + holdSec ? found : null;
}
