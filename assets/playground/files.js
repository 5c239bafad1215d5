/** Several files at once: a list with a row for each, and one file at a time, because the gateway has one slot. */
import { createFileRow } from './file-row.js';
import { toFields } from './request.js';
import { renamed } from './speakers.js';
import { download, save, toDownload } from './take.js';
import { toZip } from './zip.js';

/**
 * @param parts elements by name: box, rows, kind, all, clear
 * @param job the one of the tab
 * @param on open(entry), finished(entry), clear(), done(), and choices() of the form
 */
export function createFiles({ box, rows, kind, all, clear }, job, client, on) {
  let entries = [];
  let isRunning = false;

  const among = (...states) => entries.filter(({ state }) => states.includes(state));
  const toNames = ({ answer, names }) => renamed(answer, (label) => names.get(label) || label);
  const toFile = (entry) => {
    const answer = toNames(entry);
    return [kind.value, answer.segments, answer, entry.file.name, entry.translation];
  };

  function show(entry, state, words) {
    entry.state = state;
    entry.heardSec = 0;
    entry.row.show(state, words);
    showAll();
  }

  function showAll() {
    all.disabled = among('done').length === 0;
    clear.disabled = isRunning;
  }

  function add(file) {
    const entry = {
      file,
      own: new AbortController(),
      durationSec: Number.NaN,
      names: new Map(),
      translation: null,
    };
    entry.row = createFileRow(file, {
      cancel() {
        entry.own.abort();
        if (entry.state === 'waiting') show(entry, 'cancelled');
      },
      retry() {
        again(entry);
        run();
      },
      open: () => on.open(entry),
      download: () => download(...toFile(entry)),
    });
    rows.append(entry.row.element);
    entries.push(entry);
    show(entry, 'waiting');
    durationOf(file).then((sec) => {
      if (!(sec > 0)) return;
      entry.durationSec = sec;
      entry.row.setLength(sec);
      if (entry.state === 'running' && entry.heardSec > 0) entry.row.heard(entry.heardSec, sec);
    });
  }

  function again(entry) {
    entry.own = new AbortController();
    show(entry, 'waiting', '');
  }

  /** Also after the file was opened and transcribed there. */
  function finish(entry, answer, tookSec, settings) {
    Object.assign(entry, { tookSec, settings, translation: null });
    edit(entry, answer);
    on.finished(entry);
  }

  function edit(entry, answer) {
    entry.answer = answer;
    show(entry, 'done', answer.text.trim() || 'No speech was found.');
  }

  function hear(entry, event, startedAt, settings) {
    if (event.type === 'accepted') show(entry, 'running');
    if (event.type === 'transcript.text.delta') {
      entry.heardSec = event.end;
      entry.row.heard(event.end, entry.durationSec);
    }
    if (event.type !== 'transcript.text.done') return;
    const { type: _, ...answer } = event;
    finish(entry, answer, (performance.now() - startedAt) / 1000, settings);
  }

  async function transcribe(entry, settings, jobSignal, served) {
    const signal = AbortSignal.any([jobSignal, entry.own.signal]);
    try {
      await served(() => {
        const startedAt = performance.now();
        show(entry, 'sending');
        job.say(`Transcribing ${entry.file.name}.`);
        return client.transcribe(entry.file, toFields(settings), signal, (event) =>
          hear(entry, event, startedAt, settings),
        );
      }, signal);
    } catch (error) {
      if (jobSignal.aborted) {
        show(entry, 'waiting');
        throw error;
      }
      if (entry.own.signal.aborted) show(entry, 'cancelled');
      else show(entry, 'failed', inWords(error));
    }
  }

  /** Works through the waiting files, including any added in the meantime. After a stop the rest wait for a new start. */
  async function run() {
    if (job.isRunning) return;
    isRunning = true;
    showAll();
    const isCurrent = await job.run(async (signal, served) => {
      for (;;) {
        const [next] = among('waiting');
        if (next === undefined) break;
        await transcribe(next, on.choices(), signal, served);
      }
      // The page can be left when they are kept in the browser, or cannot be.
      await Promise.all(entries.map(({ take }) => take));
      job.say(counted());
    });
    if (!isCurrent) return; // the list was cleared meanwhile
    isRunning = false;
    showAll();
    on.done();
  }

  function counted() {
    const failed = among('failed').length;
    const done = `Done: ${among('done').length} of ${entries.length} files`;
    return failed === 0 ? `${done}.` : `${done}, ${failed} failed.`;
  }

  all.addEventListener('click', async () => {
    const files = await Promise.all(among('done').map((entry) => toDownload(...toFile(entry))));
    save(await toZip(files), 'transcripts.zip');
    job.say(files.length === 1 ? '1 file is in the zip.' : `${files.length} files are in the zip.`);
  });
  clear.addEventListener('click', on.clear);

  return {
    finish,
    /** The text of a finished file was changed. */
    edit,
    /** The file that was kept as this take; undefined where none was. */
    ofTake: (id) => entries.find(({ takeId }) => takeId === id),
    /** True while something else is shown in the place of the list. */
    get isAside() {
      return entries.length > 0 && box.hidden;
    },
    focus: () => kind.focus(),
    /** The files that have no text yet. */
    get undone() {
      return entries.filter(({ state }) => state !== 'done').map(({ file }) => file);
    },
    get count() {
      return entries.length;
    },
    get isRunning() {
      return isRunning;
    },
    say: () => job.say(counted()),
    show(isShown) {
      box.hidden = !isShown;
    },
    add(files) {
      for (const file of files) add(file);
      box.hidden = false;
    },
    clear() {
      entries = [];
      isRunning = false;
      rows.replaceChildren();
      box.hidden = true;
    },
    /** Where nothing waits, what was not done is tried again, and where all was done, all of it. */
    start() {
      if (among('waiting').length === 0) {
        const undone = among('failed', 'cancelled');
        for (const entry of undone.length > 0 ? undone : entries) again(entry);
      }
      return run();
    },
  };
}

function inWords({ message, requestId = null }) {
  return requestId === null ? message : `${message}. Request id: ${requestId}`;
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
