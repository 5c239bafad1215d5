/** A link to a sound: this browser fetches it, where the other site lets pages do so. */
import { sizeOf } from './sizes.js';

const MOST_BYTES = 500_000_000;

/**
 * @param parts elements by name: input, button, progress, note
 * @param on file(File), failed(message)
 */
export function createLink({ input, button, progress, note }, on) {
  let running = null;

  async function get(text) {
    running?.abort();
    const mine = new AbortController();
    running = mine;
    input.value = text;
    button.textContent = 'Cancel';
    progress.removeAttribute('value');
    progress.hidden = false;
    note.textContent = 'Fetching the link.';
    note.hidden = false;
    const show = (bytes, total) => {
      note.textContent = sizeOf(bytes, total);
      if (total > 0) progress.value = Math.min(1, bytes / total);
    };
    let failure = null;
    const file = await fetchSound(text, mine.signal, show).catch((error) => {
      failure = error;
    });
    if (running !== mine) return;
    running = null;
    button.textContent = 'Get';
    progress.hidden = true;
    note.hidden = true;
    if (failure === null) {
      input.value = '';
      on.file(file);
    } else if (!mine.signal.aborted) on.failed(failure.message);
  }

  button.addEventListener('click', () => {
    if (running !== null) running.abort();
    else if (input.value.trim() === '') input.focus();
    else get(input.value.trim());
  });
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault(); // Enter would submit the form, which starts a transcription
    if (running === null && input.value.trim() !== '') get(input.value.trim());
  });
  return { get };
}

/** @param onProgress (bytes, total), with a total of 0 where it is not known */
async function fetchSound(text, signal, onProgress) {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) throw new Error('That is not a link. Links begin with https://');
  if (url.protocol !== 'https:' && url.origin !== location.origin)
    throw new Error('Only https:// links can be fetched here.');
  const options = { signal, credentials: 'omit', referrerPolicy: 'no-referrer' };
  const response = await fetch(url, options).catch(() => {
    throw new Error(
      `${url.host} cannot be reached, or does not let other sites fetch this. Download the file and drop it here.`,
    );
  });
  if (!response.ok) throw new Error(`${url.host} answered ${response.status}.`);
  const type = (response.headers.get('Content-Type') ?? '').split(';')[0];
  if (type === 'text/html') throw new Error('That link leads to a web page, not to audio.');
  const total = Number(response.headers.get('Content-Length')) || 0;
  const parts = [];
  const reader = response.body.getReader();
  for (let bytes = 0; Math.max(bytes, total) <= MOST_BYTES; ) {
    const { done, value } = await reader.read().catch(() => {
      throw new Error(`The connection to ${url.host} ended before the file was complete.`);
    });
    if (done) return new File(parts, nameOf(url), { type });
    parts.push(value);
    bytes += value.length;
    onProgress(bytes, total);
  }
  reader.cancel().catch(() => undefined);
  throw new Error(
    `That file is larger than ${MOST_BYTES / 1_000_000} MB. Download the file and drop it here.`,
  );
}

function nameOf({ pathname, host }) {
  const last = pathname.split('/').at(-1);
  try {
    return decodeURIComponent(last) || host;
  } catch {
    return last;
  }
}
