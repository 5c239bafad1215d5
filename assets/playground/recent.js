/** Lists the takes that this browser keeps, and opens them again. One of them may be open on the page. */
import { shortTime } from './captions.js';
import { keepAnything, keepsAnything } from './settings.js';
import { inTab } from './storage.js';
import { createTakes, MOST_SOUND_BYTES } from './takes.js';

/** The id of the take that is open in this tab, for a reload. */
const OPEN = 'voxgate-take';

/**
 * @param parts elements by name: list, empty, forgetAll, keep, problem
 * @param onOpen (take, isReload) => void
 */
export function createRecent({ list, empty, forgetAll, keep, problem }, onOpen) {
  const takes = createTakes();
  /** The id of the open take; null where none is open, or none is kept. */
  let current = Promise.resolve(null);

  function say(text) {
    problem.textContent = text;
    problem.hidden = text === '';
  }

  /** Says why it went wrong. */
  const attempt = (work) => work().catch((error) => say(error.message));

  function setCurrent(id) {
    current = Promise.resolve(id);
    remember(id);
  }

  async function draw() {
    const kept = await takes.list();
    const open = await current;
    const focused = [...list.children].findIndex((row) => row.contains(document.activeElement));
    list.replaceChildren(...kept.map((take) => row(take, take.id === open)));
    if (focused >= 0)
      (list.children[Math.min(focused, kept.length - 1)]?.querySelector('button') ?? keep).focus();
    empty.hidden = kept.length > 0;
    forgetAll.hidden = kept.length === 0;
  }

  function row({ id, name, at, answer }, isOpen) {
    const item = document.createElement('li');
    const open = button('take-open', name, () => attempt(() => reopen(id, false)));
    if (isOpen) open.setAttribute('aria-current', 'true');
    const facts = document.createElement('span');
    facts.className = 'note take-facts';
    facts.textContent = [dateOf(at), shortTime(answer.duration), answer.model].join(' · ');
    open.title = excerptOf(answer);
    open.append(facts);
    const forget = button('small', 'Forget', () => attempt(() => remove(id)));
    forget.setAttribute('aria-label', `Forget ${name}`);
    item.append(open, forget);
    return item;
  }

  async function reopen(id, isReload) {
    say('');
    const take = await takes.get(id);
    if (take !== null && onOpen(take, isReload)) setCurrent(id);
    await draw();
  }

  /** The page shows a take that is kept. @param mine the promise of its id */
  function enter(mine) {
    current = mine;
    attempt(async () => {
      const id = await mine;
      if (current === mine) remember(id);
      await draw();
    });
  }

  async function remove(id) {
    await takes.remove(id);
    if ((await current) === id) setCurrent(null);
    await draw();
  }

  /* Forgetting everything takes two clicks. */

  const disarm = () => {
    forgetAll.textContent = 'Forget all';
    delete forgetAll.dataset.armed;
  };
  forgetAll.addEventListener('blur', disarm);
  forgetAll.addEventListener('click', () => {
    if (forgetAll.dataset.armed === undefined) {
      forgetAll.textContent = 'Really forget all?';
      forgetAll.dataset.armed = '';
      return;
    }
    disarm();
    attempt(async () => {
      keep.focus(); // the button goes
      await takes.clear();
      setCurrent(null);
      await draw();
    });
  });

  keep.checked = keepsAnything();
  keep.addEventListener('change', () => keepAnything(keep.checked));

  attempt(async () => {
    await takes.recover();
    await draw();
    const before = remembered();
    if (before !== null && keepsAnything()) await reopen(before, true);
  });

  return {
    /**
     * Keeps a take. @param take as takes.js has it, without id and time
     * @param isOpen true where it is what the page shows now
     * @returns {Promise<number | null>} its id; null where it is not kept
     */
    keep(take, sound, isOpen = true) {
      if (!keepsAnything()) {
        if (isOpen) setCurrent(null);
        return Promise.resolve(null);
      }
      say('');
      const mine = takes.add(take, sound).catch((error) => {
        say(`${take.name} is not kept. ${error.message}`);
        return null;
      });
      if (isOpen) enter(mine);
      else attempt(() => mine.then(draw));
      return mine;
    },
    enter,
    /** Changes the take that is on the page, as somebody edits its text or names its speakers. */
    update: (changes) =>
      attempt(async () => {
        const id = await current;
        if (id !== null) await takes.update(id, changes);
      }),
    /** The page has something else now. */
    leave() {
      setCurrent(null);
      for (const open of list.querySelectorAll('[aria-current]')) open.removeAttribute('aria-current');
    },
  };
}

/** What takes the place of a sound that is too long to be kept. */
export const NO_SOUND = `The audio was not kept; up to ${MOST_SOUND_BYTES / 1_000_000} MB it is, while there is room.`;

const dateOf = (at) => new Date(at).toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' });

const excerptOf = ({ text = '' }) => text.trim().slice(0, 80) || 'No speech';

function button(className, text, onClick) {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = className;
  const label = document.createElement('span');
  label.textContent = text;
  element.append(label);
  element.addEventListener('click', onClick);
  return element;
}

const remember = (id) => inTab.set(OPEN, id === null ? null : String(id));

const remembered = () => Number(inTab.get(OPEN)) || null;
