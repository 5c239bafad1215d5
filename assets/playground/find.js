/** Finds and replaces plain text in a transcript, and marks what was found. */
import { reveal } from './transcript.js';

/** Marks beyond these are not drawn, while they are counted and can be reached. */
const MOST_MARKED = 1000;

/** @returns {{index: number, from: number, to: number}[]} where a text is, in any case of its letters */
function findAll(query, count, textAt) {
  if (query.trim() === '') return [];
  const pattern = new RegExp(query.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'), 'giu');
  const found = [];
  for (let index = 0; index < count; index++) {
    for (const { 0: hit, index: from } of textAt(index).matchAll(pattern))
      found.push({ index, from, to: from + hit.length });
  }
  return found;
}

/** The texts after a replacement, as `[index, text][]`. */
export function replaced(found, text, textAt) {
  const changes = new Map();
  for (const { index, from, to } of found.toReversed()) {
    const before = changes.get(index) ?? textAt(index);
    changes.set(index, before.slice(0, from) + text + before.slice(to));
  }
  return [...changes];
}

/**
 * @param parts elements by name: form, open, close, query, count, previous, next, replacement, one, all
 * @param canEdit () => boolean
 */
export function createFind(parts, box, transcript, canEdit, say) {
  const { form, open, close, query, count, previous, next, replacement, one, all } = parts;
  let found = [];
  let at = 0;

  function search() {
    const { edits } = transcript;
    found = form.hidden ? [] : findAll(query.value, edits.count, edits.textAt);
    at = Math.min(at, Math.max(0, found.length - 1));
    show();
  }

  function show() {
    const isAny = found.length > 0;
    count.textContent = query.value.trim() === '' ? '' : isAny ? `${at + 1} of ${found.length}` : 'Not found';
    for (const button of [previous, next, one, all]) button.disabled = !isAny;
    const from = Math.max(0, Math.min(at - MOST_MARKED / 2, found.length - MOST_MARKED));
    const placeOf = (hit) => placeIn(transcript.saidAt(hit.index), hit);
    // Each change of the text would move every live range, which is slow with many.
    mark(
      'found',
      found.slice(from, from + MOST_MARKED).map((hit) => new StaticRange(placeOf(hit))),
    );
    const now = isAny ? liveRange(placeOf(found[at])) : null;
    mark('found-now', now === null ? [] : [now]);
    if (now !== null) reveal(box, now);
  }

  function go(step) {
    if (found.length === 0) return;
    at = (at + step + found.length) % found.length;
    show();
  }

  function toggle(isOpen) {
    form.hidden = !isOpen;
    open.setAttribute('aria-expanded', String(isOpen));
    search();
    if (isOpen) query.select();
    else open.focus();
  }

  function replace(hits) {
    if (!canEdit() || hits.length === 0) return;
    // What was put in place of one hit may be found again, and is not the next one.
    if (hits.length === 1) at += findAll(query.value, 1, () => replacement.value).length;
    transcript.change(replaced(hits, replacement.value, transcript.edits.textAt));
    say(hits.length === 1 ? 'Replaced 1 match.' : `Replaced ${hits.length} matches.`);
  }

  open.addEventListener('click', () => toggle(form.hidden));
  close.addEventListener('click', () => toggle(false));
  query.addEventListener('input', () => {
    at = 0;
    search();
  });
  previous.addEventListener('click', () => go(-1));
  next.addEventListener('click', () => go(1));
  one.addEventListener('click', () => replace(found.slice(at, at + 1)));
  all.addEventListener('click', () => replace(found));
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') toggle(false);
    else if (event.key === 'Enter' && event.target === query) go(event.shiftKey ? -1 : 1);
    else if (event.key === 'Enter' && event.target === replacement) replace(found.slice(at, at + 1));
    else return;
    event.preventDefault();
  });
  return {
    /** Searches again, after the text has changed. */
    refresh: search,
    close() {
      form.hidden = true;
      open.setAttribute('aria-expanded', 'false');
      search();
    },
  };
}

/** The place of a hit in the text nodes of a segment. */
function placeIn(said, { from, to }) {
  const place = { startContainer: said, startOffset: 0, endContainer: said, endOffset: 0 };
  const walker = document.createTreeWalker(said, NodeFilter.SHOW_TEXT);
  let before = 0;
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const { length } = node.data;
    if (from >= before && from < before + length)
      Object.assign(place, { startContainer: node, startOffset: from - before });
    if (to <= before + length) return { ...place, endContainer: node, endOffset: to - before };
    before += length;
  }
  return place;
}

function liveRange({ startContainer, startOffset, endContainer, endOffset }) {
  const range = document.createRange();
  range.setStart(startContainer, startOffset);
  range.setEnd(endContainer, endOffset);
  return range;
}

/** Marks without touching the text. An older browser still scrolls to what was found. */
function mark(name, ranges) {
  if (typeof Highlight === 'undefined') return;
  if (ranges.length === 0) CSS.highlights.delete(name);
  else CSS.highlights.set(name, new Highlight(...ranges));
}
