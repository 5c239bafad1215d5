/** One message of a conversation, and how it is shown. */
import { createMarkdownView } from './markdown.js';
import { splitThinking } from './thinking.js';

function toolButton(name, action) {
  const button = document.createElement('button');
  button.className = 'small';
  button.type = 'button';
  button.dataset.do = action;
  button.textContent = name;
  return button;
}

/** What the model thinks, in a fold that is closed. */
function createThought() {
  const fold = document.createElement('details');
  fold.className = 'thought';
  const summary = document.createElement('summary');
  summary.textContent = 'Thinking';
  const text = document.createElement('div');
  text.className = 'as-written';
  text.dir = 'auto';
  fold.append(summary, text);
  fold.hidden = true;
  return {
    fold,
    show(thought) {
      fold.hidden = thought === '';
      if (text.textContent !== thought) text.textContent = thought;
    },
  };
}

function createRow(role, canRetake) {
  const row = document.createElement('li');
  row.className = `message ${role}`;
  const who = document.createElement('b');
  who.className = 'note';
  who.textContent = role === 'user' ? 'You' : 'Model';
  const said = document.createElement(role === 'user' ? 'p' : 'div');
  said.className = role === 'user' ? 'bubble' : 'bubble markdown';
  said.dir = 'auto';
  const tools = document.createElement('div');
  tools.className = 'row tools';
  const note = document.createElement('span');
  note.className = 'note';
  if (role === 'assistant') tools.append(toolButton('Copy answer', 'copy'));
  if (canRetake) {
    const retake = role === 'user' ? toolButton('Edit', 'edit') : toolButton('Try again', 'again');
    retake.classList.add('retake');
    tools.append(retake);
  }
  tools.append(note);
  const thought = createThought();
  row.append(who, ...(role === 'assistant' ? [thought.fold] : []), said, tools);
  return { row, said, thought, note };
}

/** @returns calls of `show`, once in the next frame however many they are */
function inNextFrame(show) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      show();
    });
  };
}

/**
 * @param kept {role, content, note} of a message that is whole; one without content may grow
 * @param canRetake whether it can be asked again, as long as it is among the last two
 * @param onGrown () => void, called when more of it is shown
 */
export function createMessage({ role, content, note = '' }, canRetake, onGrown) {
  const shown = createRow(role, canRetake);
  let written = content;
  let thoughtApart = '';
  let isWhole = content !== '';
  const split = () => (role === 'user' ? { thought: '', said: written } : splitThinking(written, isWhole));
  const view = role === 'user' ? null : createMarkdownView(shown.said, () => split().said, onGrown);
  const showThought = () =>
    shown.thought.show([thoughtApart, split().thought].filter((part) => part !== '').join('\n\n'));
  const thoughtGrows = inNextFrame(showThought);

  const message = {
    role,
    row: shown.row,
    /** The element with what it says. */
    box: shown.said,
    append(text) {
      written += text;
      thoughtGrows();
      view.grow();
    },
    /** Adds to what the model thinks, where it comes apart from the answer. */
    think(text) {
      thoughtApart += text;
      thoughtGrows();
    },
    /**
     * @param text about the answer, such as how fast it came
     * @returns {Promise<void>} when it is shown as a whole
     */
    async end(text) {
      message.note = text;
      shown.note.textContent = text;
      isWhole = true;
      showThought();
      await view?.end();
    },
    /** What it says, without what it thinks. */
    get content() {
      return split().said;
    },
    get isEmpty() {
      return written === '' && thoughtApart === '';
    },
    /** What is kept of it. */
    toJSON: () => ({ role, content: written, note: message.note }),
  };
  if (view === null) shown.said.textContent = content;
  if (isWhole) message.end(note);
  return message;
}
