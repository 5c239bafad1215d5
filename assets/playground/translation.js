/** The translation of a transcript, beside it: the gateway hears the same sound again, and each row has its part. */
import { placeOf } from './captions.js';
import { toFields } from './request.js';

/**
 * @param parts elements by name: button, list
 * @param client the gateway's, job the one of the tab
 * @param on whole(segments) when all of it is there, changed() when more or less of it is shown
 */
export function createTranslation({ button, list }, client, job, on) {
  /** Holds what to send: the sound and the choices; null where nothing can be translated. */
  let source = null;
  /** Holds `{start, end, text}` as it came. */
  let segments = [];
  let isWhole = false;

  const isShown = () => list.classList.contains('side');

  function show(next) {
    list.classList.toggle('side', next);
    button.setAttribute('aria-pressed', String(next));
    on.changed();
  }

  function showButton() {
    button.hidden = source === null && !isWhole;
  }

  function empty() {
    for (const element of list.querySelectorAll('.translated')) element.remove();
    segments = [];
    isWhole = false;
  }

  function add({ start, end, delta, text = delta }) {
    segments.push({ start, end, text });
    const rows = [...list.children];
    const row = rows[placeOf({ start, end }, rows, ({ dataset }) => Number(dataset.start))];
    if (row === undefined) return;
    let said = row.querySelector('.translated');
    if (said === null) {
      said = document.createElement('p');
      said.className = 'translated';
      said.lang = 'en';
      const name = document.createElement('span');
      name.className = 'visually-hidden';
      name.textContent = 'Translation: ';
      said.append(name);
      row.append(said);
    }
    said.append(` ${text.trim()}`);
  }

  async function attempt(signal) {
    const { file, choices } = source;
    job.say('Translating.');
    await client.transcribe(file, toFields(choices), signal, (event) => {
      if (signal.aborted) return;
      if (event.type === 'accepted') {
        empty();
        show(true);
      }
      if (event.type === 'transcript.text.delta') add(event);
      if (event.type !== 'transcript.text.done') return;
      // A model that does not stream has all of its text here.
      if (segments.length === 0) for (const segment of event.segments) add(segment);
      isWhole = true;
      on.whole(segments);
      job.say('Translated.');
    });
  }

  button.addEventListener('click', () => {
    if (isShown() || isWhole) show(!isShown());
    else if (!job.isRunning) job.run((signal, served) => served(() => attempt(signal).finally(on.changed)));
  });

  return {
    /** What stands beside the text now, `{start, end, text}[]`; null where nothing does. */
    get segments() {
      return isShown() && segments.length > 0 ? segments : null;
    },
    /** Shows a translation that was kept. */
    restore(kept) {
      empty();
      for (const segment of kept) add(segment);
      isWhole = true;
      show(true);
      showButton();
    },
    /** @param next {file, choices}, or null */
    offer(next) {
      source = next && {
        ...next,
        choices: { ...next.choices, translate: true, diarize: false, wordTimes: false },
      };
      showButton();
    },
    clear() {
      empty();
      show(false);
      this.offer(null);
    },
  };
}
