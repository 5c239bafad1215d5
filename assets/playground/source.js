/** Sound comes in here: it is chosen, dropped anywhere on the page, or recorded. */
import { shortTime } from './captions.js';
import { startRecording, whyNoRecording } from './recorder.js';

/**
 * @param parts elements by name: input, button, label, note
 * @param on files(File[]), recording(levels, sec) while it lasts, refused(message)
 */
export function createSource({ input, button, label, note }, on) {
  let recording = null;

  input.addEventListener('change', () => {
    if (input.files.length > 0) on.files([...input.files]);
    input.value = ''; // so that the same file can be chosen again
  });

  for (const event of ['dragenter', 'dragover']) {
    addEventListener(event, (drag) => {
      if (!drag.dataTransfer.types.includes('Files')) return;
      drag.preventDefault();
      document.body.classList.add('dragging');
    });
  }
  addEventListener('dragleave', ({ relatedTarget }) => {
    if (relatedTarget === null) document.body.classList.remove('dragging');
  });
  addEventListener('drop', (drop) => {
    document.body.classList.remove('dragging');
    const dropped = [...drop.dataTransfer.files];
    if (dropped.length === 0) return;
    drop.preventDefault();
    if (recording === null) on.files(dropped);
  });

  async function record() {
    const levels = [];
    button.disabled = true;
    try {
      recording = await startRecording((level, sec) => {
        levels.push(level);
        label.textContent = `Stop (${shortTime(sec)})`;
        on.recording(levels, sec);
      });
    } catch (error) {
      const refused = error.name === 'NotAllowedError';
      on.refused(
        refused ? 'The microphone was not allowed.' : `The microphone cannot be used: ${error.message}`,
      );
      return;
    } finally {
      button.disabled = false;
    }
    button.focus(); // a disabled button loses the focus
    button.classList.add('recording');
    input.disabled = true;
    on.recording(levels, 0);
    const recorded = await recording.file;
    recording = null;
    input.disabled = false;
    button.classList.remove('recording');
    label.textContent = 'Record';
    on.files([recorded]);
  }

  button.addEventListener('click', () => (recording === null ? record() : recording.stop()));
  const why = whyNoRecording();
  button.disabled = why !== null;
  note.textContent = why ?? '';
  note.hidden = why === null;

  return {
    get isRecording() {
      return recording !== null;
    },
  };
}
