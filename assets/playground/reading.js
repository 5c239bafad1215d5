/** What a reader does with a transcript on the page: goes through it word by word, edits it, finds and replaces. */
import { shortTime } from './captions.js';
import { openEditor } from './editor.js';
import { createFind } from './find.js';
import { createTranscript } from './transcript.js';
import { createWordKeys } from './word-keys.js';

/**
 * @param parts elements by name: box, list, tools, edit, undo, note and those of the search
 * @param on say(text), canEdit() => boolean, edited() after every change of the text
 */
export function createReading(parts, speakers, player, on) {
  const { box, list, tools, edit, undo, note } = parts;
  const transcript = createTranscript(box, list, speakers, changed, show);
  const keys = createWordKeys(box, list, {
    seek: (word) => player().seek(transcript.startOf(word)),
    seekTo: (sec) => player().seek(sec),
    play: (word) => player().playFrom(transcript.startOf(word)),
    toggle: () => player().toggle(),
    edit: write,
    undo: takeBack,
    restore: (i) => on.canEdit() && transcript.restore(i),
  });
  const find = createFind(parts, box, transcript, on.canEdit, on.say);

  function changed() {
    undo.hidden = !transcript.edits.canUndo;
    find.refresh();
    keys.refresh();
    on.edited();
  }

  /** Shows what can be done with a text, when there is one. */
  function show() {
    const isEmpty = transcript.edits.count === 0;
    tools.hidden = isEmpty;
    note.hidden = isEmpty;
    undo.hidden = !transcript.edits.canUndo;
    keys.refresh();
    find.refresh();
  }

  function write(said) {
    if (!on.canEdit() || said === null) return;
    const i = Number(said.dataset.index);
    const label = `Text at ${shortTime(transcript.edits.segmentAt(i).start)}`;
    openEditor(said, label, transcript.edits.textAt(i), {
      save: (text) => transcript.change([[i, text]]),
      closed: (hadFocus) => hadFocus && keys.goTo(said),
    });
  }

  function takeBack() {
    if (!on.canEdit()) return;
    const changes = transcript.undo();
    if (changes.length > 0) on.say('Undone.');
    // The button goes with the last change, and would take the keyboard with it.
    if (changes.length > 0 && undo.hidden) keys.goTo(transcript.saidAt(changes[0]));
  }

  edit.addEventListener('click', () => write(keys.said));
  undo.addEventListener('click', takeBack);

  return {
    transcript,
    /** For a text that broke off. */
    show,
    clear() {
      transcript.clear();
      tools.hidden = true;
      note.hidden = true;
      find.close();
    },
  };
}
