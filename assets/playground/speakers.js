/** Lists who speaks, and lets the visitor rename them. A new name shows everywhere, in the downloads too. */
import { shortTime } from './captions.js';

/** The colors of playground.css. A seventh speaker has the color of the first, but a lane and a name of its own. */
const COLORS = 6;

/** @param onRename () => void */
export function createSpeakers(box, list, onRename) {
  /** Holds the labels of the gateway in the order of their lanes. */
  let labels = [];
  let names = new Map();

  const laneOf = (label) => labels.indexOf(label);
  const colorOf = (label) => (laneOf(label) % COLORS) + 1;
  const nameOf = (label) => names.get(label) || label;

  function draw({ speaker: label, seconds }) {
    const row = document.createElement('li');
    const mark = document.createElement('span');
    mark.className = `mark speaker-${colorOf(label)}`;
    mark.setAttribute('aria-hidden', 'true');
    const input = document.createElement('input');
    input.value = nameOf(label);
    input.maxLength = 100;
    input.autocomplete = 'off';
    input.setAttribute('aria-label', `Name of speaker ${label}`);
    input.addEventListener('input', () => {
      names.set(label, input.value.trim());
      onRename();
    });
    // An empty name would leave nothing to read, so the label of the gateway comes back.
    input.addEventListener('change', () => {
      input.value = nameOf(label);
    });
    const time = document.createElement('span');
    time.className = 'note';
    time.textContent = seconds === undefined ? '' : shortTime(Math.max(1, Math.round(seconds)));
    row.append(mark, input, time);
    list.append(row);
  }

  return {
    laneOf,
    colorOf,
    nameOf,
    get count() {
      return labels.length;
    },
    clear() {
      labels = [];
      list.replaceChildren();
      box.hidden = true;
    },
    /** The names that the visitor gave, by label. */
    get names() {
      return Object.fromEntries(names);
    },
    /** Another sound has other speakers. The names stay where the same one is transcribed again. */
    useNames(given = new Map()) {
      names = given;
    },
    /** Adds a lane for a speaker of a stream who was not heard before. */
    hear(label) {
      if (label === undefined || labels.includes(label)) return;
      labels.push(label);
      draw({ speaker: label });
      box.hidden = false;
    },
    /** Shows the speakers of the whole audio, `{speaker, seconds}[]`; speakers who were shown keep their lanes. */
    finish(spoken) {
      const known = spoken.map(({ speaker }) => speaker);
      labels = [...labels, ...known.filter((label) => !labels.includes(label))];
      const secondsOf = new Map(spoken.map(({ speaker, seconds }) => [speaker, seconds]));
      const focused = [...list.children].findIndex((row) => row.contains(document.activeElement));
      list.replaceChildren();
      for (const speaker of labels) draw({ speaker, seconds: secondsOf.get(speaker) });
      list.children[focused]?.querySelector('input').focus();
      box.hidden = labels.length === 0;
    },
    renamed: (value) => renamed(value, nameOf),
  };
}

/** The same value with the visitor's name in the place of each `speaker`, at any depth. */
export function renamed(value, nameOf) {
  if (Array.isArray(value)) return value.map((each) => renamed(each, nameOf));
  if (typeof value !== 'object' || value === null) return value;
  const pairs = Object.entries(value).map(([key, of]) => [
    key,
    key === 'speaker' ? nameOf(of) : renamed(of, nameOf),
  ]);
  return Object.fromEntries(pairs);
}
