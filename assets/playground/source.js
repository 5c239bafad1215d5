/** Sound comes in here: it is chosen, dropped anywhere on the page, pasted, fetched from a link, or recorded. */
import { shortTime } from './captions.js';
import { createLink } from './link.js';
import { whyNoMicrophone } from './microphone.js';
import { startRecording, whyNoRecording } from './recorder.js';

/**
 * @param parts elements by name: input, button, label, note, sample, panel, and those of the link
 * @param on files(File[]), sample(File), recording(levels, sec) while it lasts, refused(message)
 */
export function createSource({ input, button, label, note, sample, panel, link }, on) {
  let recording = null;
  /** Holds the files that exist nowhere else. */
  const recorded = new WeakSet();

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

  const links = createLink(link, {
    file: (file) => recording === null && on.files([file]),
    failed: on.refused,
  });

  addEventListener('paste', (paste) => {
    if (panel.hidden || recording !== null) return;
    // A copied picture is not audio, and a copied table cell has a picture besides its text.
    const pasted = [...paste.clipboardData.files].filter(({ type }) => !type.startsWith('image/'));
    const text = paste.clipboardData.getData('text/plain').trim();
    const isWriting = paste.target.matches?.('input:not([type="checkbox"]), textarea, [contenteditable]');
    if (pasted.length > 0) on.files(pasted);
    else if (!isWriting && /^https?:\/\/\S+$/i.test(text)) links.get(text);
    else return;
    paste.preventDefault();
  });

  sample.addEventListener('click', async () => {
    if (recording !== null) return;
    const clip = await fetchSample();
    if (clip === null) on.refused('The gateway cannot be reached for the sample. Is it running?');
    else on.sample(clip);
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
      on.refused(whyNoMicrophone(error));
      return;
    } finally {
      button.disabled = false;
    }
    button.focus(); // a disabled button loses the focus
    button.classList.add('recording');
    input.disabled = true;
    on.recording(levels, 0);
    const file = await recording.file;
    recorded.add(file);
    recording = null;
    input.disabled = false;
    button.classList.remove('recording');
    label.textContent = 'Record';
    on.files([file]);
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
    wasRecorded: (file) => recorded.has(file),
  };
}

/** Null where it cannot be had. */
async function fetchSample() {
  try {
    const response = await fetch('assets/sample.mp3');
    if (!response.ok) return null;
    return new File([await response.blob()], 'Kennedy 1961.mp3', { type: 'audio/mpeg' });
  } catch {
    return null;
  }
}
