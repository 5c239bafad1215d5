/** One file of several: its row has a name, a state with progress, the beginning of its text, and buttons. */
import { shortTime } from './captions.js';

/** How much of a text its row shows. */
const EXCERPT = 140;

/** What the row says in each state, how that looks, and which buttons it has then. */
const STATES = {
  waiting: { says: 'Waiting', look: 'badge', buttons: ['cancel'] },
  sending: { says: 'Sending', look: 'badge accent', buttons: ['cancel'] },
  running: { says: 'Transcribing', look: 'badge accent', buttons: ['cancel'] },
  done: { says: 'Done', look: 'badge good', buttons: ['open', 'download'] },
  failed: { says: 'Failed', look: 'badge bad', buttons: ['retry'] },
  cancelled: { says: 'Cancelled', look: 'badge warn', buttons: ['retry'] },
};

/**
 * @param file a File
 * @param on cancel(), retry(), open(), download()
 */
export function createFileRow(file, on) {
  const state = make('span');
  const progress = make('progress', { max: 1 });
  progress.setAttribute('aria-label', `Progress of ${file.name}`);
  const length = make('span', { className: 'note file-length' });
  const text = make('p', { dir: 'auto' });
  const buttons = Object.fromEntries(
    [
      ['open', 'Open'],
      ['download', 'Download'],
      ['retry', 'Try again'],
      ['cancel', 'Cancel'],
    ].map(([name, label]) => [name, button(label, file.name, on[name])]),
  );
  const name = make('th', { scope: 'row' });
  name.append(make('span', { textContent: file.name }), length);
  const actions = cell('file-actions', ...Object.values(buttons));
  const element = make('tr');
  element.append(name, cell('file-state', state, progress), cell('file-text', text), actions);
  // Without its roles, some screen readers do not treat a table laid out as cards as a table.
  for (const [part, role] of [
    [element, 'row'],
    [name, 'rowheader'],
  ])
    part.setAttribute('role', role);

  return {
    element,
    focus: () => buttons.open.focus(),
    setLength(sec) {
      length.textContent = shortTime(sec);
    },
    /** @param words the text, or what went wrong; what was there stays without it */
    show(next, words) {
      const { says, look, buttons: shown } = STATES[next];
      const hadFocus = actions.contains(document.activeElement);
      state.textContent = says;
      state.className = look;
      progress.hidden = next !== 'running';
      progress.removeAttribute('value');
      for (const [name, each] of Object.entries(buttons)) each.hidden = !shown.includes(name);
      if (words !== undefined) text.textContent = shortened(words);
      // A button that goes would take the focus with it.
      if (hadFocus && !shown.some((name) => buttons[name] === document.activeElement))
        buttons[shown[0]].focus();
    },
    /** @param durationSec not a number where nobody knows it */
    heard(sec, durationSec) {
      state.textContent = shortTime(sec);
      if (!(durationSec > 0)) return;
      progress.value = Math.min(1, sec / durationSec);
      state.textContent += ` of ${shortTime(durationSec)}`;
    },
  };
}

function shortened(text) {
  return text.length > EXCERPT ? `${text.slice(0, EXCERPT).trimEnd()}…` : text;
}

function make(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}

function cell(className, ...parts) {
  const element = make('td', { className });
  element.setAttribute('role', 'cell');
  element.append(...parts);
  return element;
}

function button(label, name, onClick) {
  const element = make('button', { type: 'button', className: 'small', textContent: label });
  element.setAttribute('aria-label', `${label} ${name}`);
  element.addEventListener('click', onClick);
  return element;
}
