/** Gives results away, as files and through the clipboard. */
import { toSrt, toText, toVtt } from './captions.js';

const TYPES = { srt: 'application/x-subrip', vtt: 'text/vtt', txt: 'text/plain', json: 'application/json' };

/** @param answer the last event of the gateway as it came; null when the stream broke off before it */
export function download(kind, segments, answer, sourceName) {
  const body = {
    srt: () => toSrt(segments),
    vtt: () => toVtt(segments),
    txt: () => toText(segments),
    json: () => `${JSON.stringify(answer ?? { segments }, null, 2)}\n`,
  }[kind]();
  save(new Blob([body], { type: TYPES[kind] }), `${sourceName.replace(/\.[^.]*$/, '')}.${kind}`);
}

/** Hands a file to the browser's downloads. */
export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/**
 * Copies the text. Where the clipboard is out of reach (plain http from another machine), the text is selected for
 * the reader to copy.
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
    await navigator.clipboard.writeText(text);
    show('Copied');
    return 'Copied.';
  } catch {
    getSelection().selectAllChildren(element);
    show('Selected');
    return 'Selected: copy it with Ctrl+C.';
  }
}
