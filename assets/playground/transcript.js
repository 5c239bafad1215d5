/** Shows the text on the page: segments as they arrive, words that light up with the sound, clicks that seek. */
import { shortTime } from './captions.js';
import { createFollowing } from './following.js';
import { estimateWords, placeWords } from './words.js';

/** A player that has been sent to a moment reports a time that is slightly less. */
const ROUNDED_SEC = 0.005;

/** The last word stays lit between two words, because the eye would see a flicker otherwise. */
const HOLD_SEC = 0.3;

/**
 * @param onSeek (sec: number) => void
 * @param speakers gives names and colors to labels
 */
export function createTranscript(box, list, onSeek, speakers) {
  let segments = [];
  /** Holds the words with their times, in order. */
  let words = [];
  let rows = [];
  let nowWord = null;
  let nowRow = null;
  const following = createFollowing(box);

  function draw(segment, pieces, isNew) {
    const row = document.createElement('li');
    row.className = isNew ? 'segment new' : 'segment';
    const when = document.createElement('button');
    when.type = 'button';
    when.className = 'when';
    when.textContent = shortTime(segment.start);
    when.setAttribute('aria-label', `Play from ${shortTime(segment.start)}`);
    when.addEventListener('click', () => onSeek(segment.start));
    const said = document.createElement('span');
    said.className = 'said';
    said.dir = 'auto';
    for (const [i, piece] of pieces.entries()) {
      const element = document.createElement('span');
      element.className = 'word';
      element.textContent = piece.text.trim();
      element.addEventListener('click', () => onSeek(piece.start));
      if (i > 0 && /^\s/.test(piece.text)) said.append(' ');
      said.append(element);
      words.push({ start: piece.start, end: piece.end, element });
    }
    row.append(when, said);
    if (segment.speaker !== undefined) said.before(nameTag(segment.speaker));
    rows.push({ start: segment.start, end: segment.end, element: row });
    list.append(row);
  }

  function nameTag(label) {
    const tag = document.createElement('b');
    tag.className = `who speaker-${speakers.colorOf(label)}`;
    tag.dataset.speaker = label;
    tag.textContent = speakers.nameOf(label);
    return tag;
  }

  function clear() {
    segments = [];
    words = [];
    rows = [];
    nowWord = null;
    nowRow = null;
    following.reset();
    list.replaceChildren();
    list.removeAttribute('lang');
  }

  return {
    clear,
    get segments() {
      return segments;
    },
    /** Shows one segment of a stream. */
    add(segment) {
      segments.push(segment);
      draw(segment, estimateWords(segment), true);
      following.grown();
    },
    /** Shows the finished answer; a stream that already showed the same text is left alone. */
    finish(answer) {
      const shown = segments.map((segment) => segment.text.trim()).join('\n');
      const final = answer.segments.map((segment) => segment.text.trim()).join('\n');
      if (shown !== final || answer.words !== undefined) {
        clear();
        const placed =
          answer.words === undefined
            ? answer.segments.map(estimateWords)
            : placeWords(answer.segments, answer.words);
        for (const [i, segment] of answer.segments.entries()) draw(segment, placed[i], false);
      }
      segments = answer.segments;
    },
    /** Shows the names that the speakers have now. */
    rename() {
      for (const tag of list.querySelectorAll('.who')) tag.textContent = speakers.nameOf(tag.dataset.speaker);
    },
    setLanguage(code) {
      list.lang = code;
    },
    /** Marks what is said at this moment of the audio. */
    follow(playedSec) {
      const sec = playedSec + ROUNDED_SEC;
      const word = at(words, sec, HOLD_SEC);
      if (word !== nowWord) {
        nowWord?.element.classList.remove('now');
        word?.element.classList.add('now');
        nowWord = word;
      }
      const row = at(rows, sec);
      if (row === nowRow) return;
      nowRow?.element.classList.remove('now');
      row?.element.classList.add('now');
      nowRow = row;
      if (row !== null) reveal(row.element);
    },
  };

  /** Scrolls the box, never the page. */
  function reveal(element) {
    const top = element.offsetTop;
    const bottom = top + element.offsetHeight;
    if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - 8;
  }
}

/** Finds the last item that has begun, if it has not ended or ended less than `holdSec` ago. */
function at(list, sec, holdSec = 0) {
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
