/** Lets a reader write over the text of one segment, where it stands. */

/** Longer than any segment of 30 s, and short enough for every machine. */
const MOST_CHARACTERS = 5000;

/** @param on save(text), closed() after it was saved or left as it was; the keyboard was there if `hadFocus` */
export function openEditor(said, label, text, on) {
  const area = document.createElement('textarea');
  area.className = 'editor';
  area.value = text;
  area.dir = 'auto';
  area.lang = said.lang;
  area.maxLength = MOST_CHARACTERS;
  area.setAttribute('aria-label', label);
  area.setAttribute('aria-describedby', 'editor-note');
  const note = document.createElement('span');
  note.id = 'editor-note';
  note.className = 'note';
  note.textContent = 'Enter saves, Escape cancels.';
  let isOpen = true;

  function close(keep, hadFocus) {
    if (!isOpen) return;
    isOpen = false;
    if (keep) on.save(area.value);
    said.hidden = false;
    area.remove();
    note.remove();
    on.closed(hadFocus);
  }
  function fit() {
    area.style.height = 'auto';
    area.style.height = `${area.scrollHeight + 2}px`;
  }

  area.addEventListener('input', fit);
  area.addEventListener('keydown', (event) => {
    if (event.isComposing || (event.key !== 'Enter' && event.key !== 'Escape')) return;
    event.preventDefault();
    event.stopPropagation();
    close(event.key === 'Enter', true);
  });
  area.addEventListener('blur', () => close(true, false));
  said.hidden = true;
  said.after(area, note);
  fit();
  area.focus();
}
