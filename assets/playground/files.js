/** Several files at once: a table with a row for each, and one file at a time, because the gateway has one slot. */
import { shortTime } from './captions.js';
import { toFields } from './request.js';
import { download } from './take.js';

/** What the summary of a text shows of it. */
const EXCERPT = 60;

/** @param parts elements by name: box, rows; @param job the one of the tab */
export function createFiles({ box, rows }, job, client) {
  let entries = [];

  function add(file) {
    const entry = {
      file,
      state: 'waiting',
      own: new AbortController(),
      durationSec: Number.NaN,
      heardSec: 0,
    };
    const row = document.createElement('tr');
    const name = document.createElement('th');
    name.scope = 'row';
    name.textContent = file.name;
    const state = document.createElement('td');
    const label = document.createElement('span');
    const progress = document.createElement('progress');
    progress.max = 1;
    progress.setAttribute('aria-label', `Transcribed of ${file.name}`);
    state.append(label, progress);
    const text = document.createElement('td');
    const actions = document.createElement('td');
    const cancel = button('Cancel', `Cancel ${file.name}`, () => {
      entry.own.abort();
      if (entry.state === 'waiting') entry.show('cancelled', 'Cancelled');
    });
    actions.append(cancel);
    row.append(name, state, text, actions);
    rows.append(row);

    entry.show = (next, words) => {
      entry.state = next;
      label.textContent = words;
      progress.hidden = next !== 'running';
      entry.heardSec = 0;
      if (next === 'running') progress.removeAttribute('value');
      cancel.hidden = next !== 'running' && next !== 'waiting';
    };
    entry.heard = (sec) => {
      entry.heardSec = sec;
      label.textContent = shortTime(sec);
      if (!(entry.durationSec > 0)) return;
      progress.value = Math.min(1, sec / entry.durationSec);
      label.textContent += ` of ${shortTime(entry.durationSec)}`;
    };
    entry.finish = (answer) => {
      entry.show('done', 'Done');
      text.append(folded(answer.text.trim() || 'No speech was found.'));
      for (const kind of ['txt', 'srt', 'vtt', 'json'])
        actions.append(
          button(kind, `Download ${file.name} as ${kind}`, () =>
            download(kind, answer.segments, answer, file.name),
          ),
        );
    };
    entry.show('waiting', 'Waiting');
    durationOf(file).then((sec) => {
      entry.durationSec = sec;
      if (entry.state === 'running' && entry.heardSec > 0) entry.heard(entry.heardSec);
    });
    entries.push(entry);
  }

  async function transcribe(entry, fields, jobSignal, served) {
    const signal = AbortSignal.any([jobSignal, entry.own.signal]);
    try {
      await served(() => {
        entry.show('running', 'Sending');
        job.say(`Transcribing ${entry.file.name}.`);
        return client.transcribe(entry.file, fields, signal, (event) => {
          if (event.type === 'accepted') entry.show('running', 'Transcribing');
          if (event.type === 'transcript.text.delta') entry.heard(event.end);
          if (event.type === 'transcript.text.done') entry.finish(event);
        });
      }, signal);
    } catch (error) {
      if (jobSignal.aborted) {
        entry.show('waiting', 'Waiting');
        throw error;
      }
      if (entry.own.signal.aborted) entry.show('cancelled', 'Cancelled');
      else entry.show('failed', `Failed: ${error.message}`);
    }
  }

  return {
    get count() {
      return entries.length;
    },
    add(files) {
      for (const file of files) add(file);
      box.hidden = false;
    },
    clear() {
      entries = [];
      rows.replaceChildren();
      box.hidden = true;
    },
    /** Does what waits, also what is added meanwhile. A stop leaves the rest waiting for another start. */
    run(choices) {
      return job.run(async (signal, served) => {
        for (;;) {
          const next = entries.find(({ state }) => state === 'waiting');
          if (next === undefined) break;
          await transcribe(next, toFields(choices), signal, served);
        }
        const done = entries.filter(({ state }) => state === 'done').length;
        job.say(`Done: ${done} of ${entries.length} files.`);
      });
    },
  };
}

function button(text, label, onClick) {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = 'small';
  element.textContent = text;
  element.setAttribute('aria-label', label);
  element.addEventListener('click', onClick);
  return element;
}

/** A long text would make its row as high as the page. */
function folded(text) {
  const said = document.createElement(text.length > EXCERPT ? 'details' : 'p');
  said.dir = 'auto';
  if (text.length <= EXCERPT) said.textContent = text;
  else {
    const summary = document.createElement('summary');
    summary.textContent = `${text.slice(0, EXCERPT)}…`;
    said.append(summary, text);
  }
  return said;
}

/** Not a number where this browser cannot tell. */
function durationOf(file) {
  const audio = new Audio();
  const url = URL.createObjectURL(file);
  return new Promise((resolve) => {
    audio.addEventListener('loadedmetadata', () => resolve(audio.duration));
    audio.addEventListener('error', () => resolve(Number.NaN));
    audio.preload = 'metadata';
    audio.src = url;
  }).finally(() => {
    audio.removeAttribute('src');
    URL.revokeObjectURL(url);
  });
}
