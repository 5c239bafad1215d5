/** Gives results away, as files and through the clipboard. */

/** The formats of a transcript. */
export const KINDS = ['txt', 'md', 'srt', 'vtt', 'csv', 'json', 'docx'];

/** `talk` of `talk.mp3`. */
const titleOf = (sourceName) => sourceName.replace(/\.[^.]*$/, '');

/**
 * The download as it is, for what packs several.
 * @param answer the last event of the gateway as it came; null when the stream broke off before it
 * @param translation `{start, end, text}[]`, or null; the formats that can have it beside the text
 * @returns {Promise<{name: string, blob: Blob}>}
 */
export async function toDownload(kind, segments, answer, sourceName, translation = null) {
  const { toFile } = await import('./exports.js');
  const title = titleOf(sourceName);
  return { name: `${title}.${kind}`, blob: await toFile(kind, segments, answer, title, translation) };
}

/** The translation alone, for the formats that have one text. */
export async function toTranslated(kind, segments, answer, sourceName, translation) {
  const { inTranslation } = await import('./exports.js');
  const english = inTranslation(segments, translation);
  return toDownload(
    kind,
    english,
    answer && { duration: answer.duration },
    `${titleOf(sourceName)}.en.${kind}`,
  );
}

export async function download(kind, segments, answer, sourceName, translation = null) {
  const { name, blob } = await toDownload(kind, segments, answer, sourceName, translation);
  save(blob, name);
}

/** Hands a file to the browser's downloads. */
export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** On plain http from another machine, browsers have no clipboard but the old way, by a selection. */
async function write(text) {
  const asked = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('no clipboard'));
  await asked.catch((error) => {
    const before = document.activeElement;
    const area = document.createElement('textarea');
    area.className = 'visually-hidden';
    area.readOnly = true;
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    before?.focus();
    if (!isCopied) throw error;
  });
}

/**
 * Copies the text. Where even the old way is out of reach, the text is selected for the reader to copy.
 * @returns a sentence that says what happened
 */
export async function copy(text, button, element) {
  const before = button.dataset.label ?? button.textContent;
  button.dataset.label = before;
  const show = (label) => {
    button.textContent = label;
    setTimeout(() => {
      button.textContent = before;
    }, 1500);
  };
  try {
    await write(text);
    show('Copied');
    return 'Copied.';
  } catch {
    getSelection().selectAllChildren(element);
    show('Selected');
    return 'Selected: copy it with Ctrl+C.';
  }
}
