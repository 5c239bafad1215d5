/** The text of live sessions: finished texts, those that may still change, and a line between two sessions. */
import { createFollowing } from './following.js';

/** A session may last a day; the page shows its last texts. */
const MAX_SHOWN = 1000;
/** All of a day can be taken away. */
const MAX_KEPT = 20_000;

/** @param parts elements by name: text (which scrolls), finals, partials */
export function createLiveText({ text: scroller, finals, partials }) {
  let segments = [];
  const rows = new Map();
  const following = createFollowing(scroller);
  const grown = () => requestAnimationFrame(following.grown);

  function addRow(row) {
    if (finals.childElementCount >= MAX_SHOWN) finals.firstChild.remove();
    finals.append(row);
    grown();
  }

  function remove(id) {
    rows.get(id)?.remove();
    rows.delete(id);
  }

  /** @param note what is said of it in small letters */
  function final(id, text, note, { startMs, endMs }) {
    remove(id);
    const said = text.trim();
    if (said === '') return;
    segments.push({ id: segments.length, start: startMs / 1000, end: endMs / 1000, text: ` ${said}` });
    if (segments.length > MAX_KEPT) segments.shift();
    const row = document.createElement('li');
    const words = document.createElement('span');
    words.className = 'said';
    words.dir = 'auto';
    words.textContent = said;
    const small = document.createElement('span');
    small.className = 'note';
    small.textContent = note;
    row.append(words, ' ', small);
    addRow(row);
  }

  return {
    get segments() {
      return segments;
    },
    /** A line for each text. */
    get lines() {
      return segments.map(({ text }) => `${text.trim()}\n`).join('');
    },
    partial(id, delta) {
      if (!rows.has(id)) {
        const row = document.createElement('p');
        row.dir = 'auto';
        rows.set(id, row);
        partials.append(row);
      }
      rows.get(id).append(delta);
      grown();
    },
    final,
    remove,
    /** What was not finished stays as it was. @param endMs where the sound ends */
    keepPartials(endMs) {
      const startMs = Math.min(endMs, (segments.at(-1)?.end ?? 0) * 1000);
      for (const [id, row] of [...rows]) final(id, row.textContent, 'not finished', { startMs, endMs });
    },
    /** Begins another session below what is there. */
    begin() {
      following.reset();
      if (segments.length === 0) return;
      const row = document.createElement('li');
      row.className = 'divider note';
      row.textContent = `Started again at ${new Date().toLocaleTimeString()}`;
      addRow(row);
    },
    clear() {
      segments = [];
      finals.replaceChildren();
      partials.replaceChildren();
      rows.clear();
      following.reset();
    },
  };
}
