/** Words for the keyboard and the mouse: all of them are one tab stop, and arrow keys move among them. */
import { reveal } from './transcript.js';

/**
 * @param list holds the words of all segments
 * @param on seek(word), play(word), toggle(), edit(said), undo(), restore(index), seekTo(sec)
 */
export function createWordKeys(box, list, on) {
  let current = null;

  /** A word is a button while it can be reached: otherwise it is text to read, and not thousands of buttons. */
  function enter(word, { focus = true } = {}) {
    current?.removeAttribute('tabindex');
    current?.removeAttribute('role');
    current = word;
    word.tabIndex = 0;
    word.setAttribute('role', 'button');
    if (!focus) return;
    word.focus({ preventScroll: true });
    reveal(box, word);
  }

  const wordIn = (said, last = false) => {
    const words = said?.querySelectorAll('.word') ?? [];
    return words[last ? words.length - 1 : 0];
  };

  /** The next segment that has a word. */
  function beside(said, step) {
    const saids = [...list.querySelectorAll('.said')];
    for (let i = saids.indexOf(said) + step; saids[i] !== undefined; i += step)
      if (wordIn(saids[i]) !== undefined) return saids[i];
    return null;
  }

  function target(word, key, ctrl) {
    const said = word.parentElement;
    const isRtl = getComputedStyle(said).direction === 'rtl';
    const saids = list.querySelectorAll('.said');
    const next = () => word.nextElementSibling ?? wordIn(beside(said, 1));
    const previous = () => word.previousElementSibling ?? wordIn(beside(said, -1), true);
    const moves = {
      ArrowRight: isRtl ? previous : next,
      ArrowLeft: isRtl ? next : previous,
      ArrowDown: () => wordIn(beside(said, 1)),
      ArrowUp: () => wordIn(beside(said, -1)),
      Home: () => (ctrl ? wordIn(saids[0]) : wordIn(said)),
      End: () => (ctrl ? wordIn(saids[saids.length - 1], true) : wordIn(said, true)),
    };
    return moves[key]?.();
  }

  function press(event) {
    const word = event.target;
    if (!word.classList.contains('word') || event.altKey) return;
    const ctrl = event.ctrlKey || event.metaKey;
    const isEnd = event.key === 'Home' || event.key === 'End';
    if (ctrl && event.key === 'z') on.undo();
    else if (ctrl && !isEnd) return;
    else if (event.key === 'Enter') on.play(word);
    else if (event.key === ' ') on.toggle();
    else if (event.key === 'F2') on.edit(word.parentElement);
    else {
      const to = target(word, event.key, ctrl);
      if (to === undefined && !event.key.startsWith('Arrow') && !isEnd) return;
      if (to) enter(to);
    }
    event.preventDefault();
  }

  list.addEventListener('keydown', press);
  list.addEventListener('click', ({ target: clicked }) => {
    const { start, restore } = clicked.dataset;
    if (clicked.classList.contains('when')) on.seekTo(Number(start));
    else if (restore !== undefined) on.restore(Number(restore));
    else if (clicked.classList.contains('word')) {
      enter(clicked);
      on.seek(clicked);
    }
  });
  list.addEventListener('dblclick', ({ target: clicked }) => {
    const said = clicked.closest('.said');
    if (said !== null) on.edit(said);
  });

  return {
    /** The segment of the word that the keyboard is at; the first segment at the beginning. */
    get said() {
      return list.contains(current) ? current.parentElement : list.querySelector('.said');
    },
    /** Lets Tab lead to a word, where the last one has gone. */
    refresh() {
      const word = wordIn(list.querySelector('.said'));
      if (!list.contains(current) && word !== undefined) enter(word, { focus: false });
    },
    /** Moves to the first word of a segment. */
    goTo(said) {
      const word = wordIn(said) ?? wordIn(beside(said, 1)) ?? wordIn(beside(said, -1), true);
      if (word !== undefined) enter(word);
    },
  };
}
