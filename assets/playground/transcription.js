/** The transcription tab: one sound at a time, with its text along a waveform and the same request as code. */
import { shortTime, toText } from './captions.js';
import { createChoices } from './choices.js';
import { watchFetching } from './fetching.js';
import { createFiles } from './files.js';
import { createJob } from './job.js';
import { createMenu } from './menu.js';
import { createPlayer } from './player.js';
import { createReading } from './reading.js';
import { createRecent, NO_SOUND } from './recent.js';
import { toFields } from './request.js';
import { sizeOf } from './sizes.js';
import { createSource } from './source.js';
import { createSpeakers } from './speakers.js';
import { copy, download, save, toTranslated } from './take.js';
import { createTranslation } from './translation.js';

/** The text is on the page: a store of the browser that hangs does not hold up what comes next. */
const LONGEST_KEEPING_MS = 3000;
const soon = (kept) => Promise.race([kept, new Promise((go) => setTimeout(go, LONGEST_KEEPING_MS))]);

const el = (id) => document.getElementById(id);

/** @param on file() when the visitor has chosen a sound, done() after a transcription, chosen() after other choices */
export function createTranscription(client, on) {
  let file = null;
  /** The name of the file, also where only its text is there. */
  let name = '';
  /** Holds the last event of the last run. */
  let answer = null;
  /** What the text was made with. */
  let settings = null;
  /** The file of several whose sound and text are shown; null where the list is, or one file alone. */
  let opened = null;

  const choices = createChoices(el('form'), on.chosen);
  const speakers = createSpeakers(el('speakers-box'), el('speakers'), () => {
    transcript.rename();
    recent.update({ names: speakers.names });
  });
  const reading = createReading(
    {
      box: el('transcript'),
      list: el('segments'),
      tools: el('tools'),
      edit: el('edit'),
      undo: el('undo'),
      note: el('words-note'),
      form: el('find'),
      open: el('find-open'),
      close: el('find-close'),
      query: el('find-query'),
      count: el('find-count'),
      previous: el('find-previous'),
      next: el('find-next'),
      replacement: el('find-replacement'),
      one: el('replace-one'),
      all: el('replace-all'),
    },
    speakers,
    () => player,
    { say: (text) => job.say(text), canEdit: () => !job.isRunning, edited: saveEdits },
  );
  const { transcript } = reading;
  const player = createPlayer(
    {
      audio: el('audio'),
      wave: el('wave'),
      play: el('play'),
      time: el('time'),
      speed: el('speed'),
      note: el('player-note'),
      name: el('file-name'),
      facts: el('file-facts'),
    },
    transcript.follow,
  );
  const job = createJob({
    start: el('start'),
    stop: el('cancel'),
    status: el('status'),
    problem: el('problem'),
    busy: el('busy'),
  });
  const files = createFiles(
    {
      box: el('files'),
      rows: el('file-rows'),
      kind: el('files-kind'),
      all: el('files-download'),
      clear: el('files-clear'),
    },
    job,
    client,
    { open: openFile, finished: keepFile, clear: clearList, done: on.done, choices: () => choices.read() },
  );
  const translation = createTranslation({ button: el('side'), list: el('segments') }, client, job, {
    whole(segments) {
      if (opened !== null) opened.translation = segments;
      recent.update({ translation: segments });
    },
    changed() {
      for (const item of el('exports').querySelectorAll('[data-translated]'))
        item.hidden = translation.segments === null;
    },
  });
  const source = createSource(
    {
      input: el('file'),
      button: el('record'),
      label: el('record-label'),
      note: el('record-note'),
      sample: el('sample'),
      panel: el('panel-transcription'),
      link: {
        input: el('link'),
        button: el('link-get'),
        progress: el('link-progress'),
        note: el('link-note'),
      },
    },
    {
      files: accept,
      sample(clip) {
        accept([clip]);
        if (file === clip) run();
      },
      recording(levels, sec) {
        if (files.count > 0) {
          if (sec === 0) closeFile();
          return;
        }
        if (sec === 0) {
          begin();
          job.say('Recording.');
        }
        player.showRecording(levels, sec);
      },
      refused: job.fail,
    },
  );

  // A text is kept when it is there. What is being done would be lost, and a recording that has no text yet.
  addEventListener('beforeunload', (event) => {
    const undone = [...files.undone, ...(answer === null && file !== null ? [file] : [])];
    if (source.isRecording || job.isRunning || undone.some(source.wasRecorded)) event.preventDefault();
  });

  const recent = createRecent(
    {
      list: el('recent-list'),
      empty: el('recent-empty'),
      forgetAll: el('forget-all'),
      keep: el('keep'),
      problem: el('recent-problem'),
    },
    reopen,
  );

  function saveEdits() {
    if (answer === null) return;
    const edited = transcript.edits.applied(answer);
    recent.update({ answer: edited });
    // The list and its zip have the text as it was edited in the opened file.
    if (opened !== null) files.edit(opened, edited);
  }

  /** Shows a take as it was when it was finished. @returns whether it does */
  function reopen(kept, isReload) {
    if (isReload && (job.isRunning || source.isRecording || file !== null || files.count > 0)) return false;
    if (source.isRecording || (job.isRunning && !files.isRunning)) {
      job.say('Still working. Cancel, or wait until it is done.');
      return false;
    }
    const entry = files.ofTake(kept.id);
    if (entry !== undefined) {
      openFile(entry);
      return true;
    }
    if (files.count > 0) putListAside();
    else begin();
    // The files of a list are all made with what is chosen now.
    if (files.count === 0 && !isReload) choices.write(kept.settings);
    showKept(kept, kept.sound, new Map(Object.entries(kept.names)));
    if (!job.isRunning) job.say(`Opened: ${name}.`);
    if (!isReload && el('result').getBoundingClientRect().top < 0) el('player').scrollIntoView();
    return true;
  }

  /** @param kept a take, or a file of the list */
  function showKept(kept, sound, names) {
    file = sound;
    name = kept.name;
    if (file === null) player.showName(name, NO_SOUND);
    else player.load(file);
    speakers.useNames(names);
    settings = kept.settings;
    showAnswer(kept.answer, kept.tookSec, choices.codeOf(kept.answer.language) || kept.language);
    if (kept.translation) translation.restore(kept.translation);
    // Others may be in the slot, and these buttons would need it.
    el('estimate').hidden ||= job.isRunning;
    offerTranslation();
    el('take').hidden = transcript.segments.length === 0;
    reading.show();
    showStart();
    on.chosen();
  }

  function accept(chosen) {
    on.file();
    // One file has the page to itself, unless there is a list already.
    if (chosen.length === 1 && files.count === 0) take(chosen[0]);
    else queue(chosen);
    showStart();
    on.chosen();
  }

  function take(chosen) {
    begin();
    file = chosen;
    name = file.name;
    job.say(`Ready: ${name}.`);
    player.load(file);
  }

  function queue(chosen) {
    if (files.count === 0) begin();
    closeFile();
    file = null;
    el('player').hidden = true;
    files.add(chosen);
    if (!job.isRunning) job.say(`Ready: ${files.count} files.`);
  }

  /** Prepares the page for a new sound, by removing everything that belonged to the last one. */
  function begin() {
    job.drop();
    recent.leave();
    closeFile();
    files.clear();
    clear();
    speakers.useNames();
    el('player').hidden = false;
    showStart();
  }

  /* Several files */

  /** @param entry a file of the list that was transcribed */
  function openFile(entry) {
    putListAside();
    opened = entry;
    recent.enter(entry.take);
    showKept({ ...entry, name: entry.file.name }, entry.file, entry.names);
    el('files-back').focus({ preventScroll: true });
    showPlayer();
  }

  /** Each file of the list is a take of its own, which is opened again after the list is gone. */
  function keepFile(entry) {
    const { answer, tookSec, settings: made, names, file: sound } = entry;
    const take = { name: sound.name, answer, tookSec, settings: made, names: Object.fromEntries(names) };
    entry.takeId = null;
    entry.take = recent.keep({ ...take, language: choices.codeOf(answer.language) }, sound, entry === opened);
    entry.take.then((id) => {
      entry.takeId = id;
    });
  }

  /** Makes room for one sound in the place of the list, which stays as it is and goes on. */
  function putListAside() {
    closeFile();
    files.show(false);
    el('files-back').hidden = false;
    el('player').hidden = false;
  }

  /** Goes back to the list, and ends what was begun in the opened file alone. */
  function closeFile() {
    if (!files.isAside) return;
    if (!files.isRunning) job.drop();
    recent.leave();
    opened = null;
    file = null;
    player.pause();
    clear();
    el('files-back').hidden = true;
    el('player').hidden = true;
    files.show(true);
    if (!files.isRunning) files.say();
    showStart();
    on.chosen();
  }

  function clearList() {
    begin();
    file = null;
    el('player').hidden = true;
    showStart();
    on.chosen();
    job.say('Choose a file or record something to begin.');
    el('file').focus();
  }

  el('files-back').addEventListener('click', () => {
    const { focus } = opened?.row ?? files;
    closeFile();
    focus();
  });

  /* The run */

  el('form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (job.isRunning || source.isRecording) return;
    if (file !== null) run();
    else if (files.count > 0) files.start();
  });
  el('measure').addEventListener('click', () => {
    el('word-times').checked = true;
    on.chosen();
    run();
  });

  /** What was transcribed before stays until the gateway has taken the new request. */
  async function run() {
    showPlayer();
    const chosen = choices.read(); // the boxes may change while it runs
    let outcome = null;
    const isCurrent = await job.run(async (signal, served) => {
      outcome = await served(() =>
        attempt(chosen, signal).finally(() => {
          el('progress').hidden = true;
          el('progress-note').textContent = '';
        }),
      );
    });
    if (!isCurrent) return; // the visitor has chosen another sound meanwhile
    el('take').hidden = transcript.segments.length === 0;
    reading.show();
    offerTranslation();
    if (outcome === null) return;
    job.say(outcome);
    on.done();
  }

  /** Also when it is known which models there are, and when the slot is free again. */
  function offerTranslation() {
    const model = choices.translator(settings?.model);
    const isForeign = answer?.segments.some(({ language = answer.language }) => language !== 'english');
    const isPossible = file !== null && isForeign && !settings.translate && model !== null && !job.isRunning;
    translation.offer(isPossible ? { file, choices: { ...settings, model } } : null);
  }

  /** What to say at the end, when the page can be left. */
  async function attempt(chosen, signal) {
    const startedAt = performance.now();
    job.say(`Sending ${file.name}.`);
    el('progress').removeAttribute('value');
    el('progress').hidden = false;
    let servedBy = null;
    let kept = null;
    const heard = new AbortController();
    const watching = AbortSignal.any([signal, heard.signal]);
    const watch = (id) => watchFetching(client.models, id, watching, showFetching);
    const isWatched = choices.isMissing(chosen.model);
    if (isWatched) watch(chosen.model);
    await client
      .transcribe(file, toFields(chosen), signal, (event) => {
        if (signal.aborted) return;
        if (event.type === 'accepted') {
          servedBy = event.model;
          clear();
          el('progress').hidden = false;
          job.say('Transcribing.');
          // The diarization weights are not a model to choose.
          if (!isWatched && (chosen.diarize || choices.isMissing(event.model))) watch(event.model);
        } else heard.abort();
        if (event.type === 'warning') hint(`${event.message}.`);
        if (event.type === 'transcript.text.delta') {
          if (player.durationSec > 0) {
            el('progress').value = Math.min(1, event.end / player.durationSec);
            el('progress-note').textContent = `${shortTime(event.end)} of ${shortTime(player.durationSec)}`;
          }
        }
        const said = partOf(event, chosen.diarize);
        if (said !== null) {
          speakers.hear(said.speaker);
          transcript.add({ id: transcript.segments.length, ...said });
          showSpans(transcript.segments);
        }
        if (event.type === 'transcript.text.done')
          kept = finish(event, (performance.now() - startedAt) / 1000, chosen);
      })
      .catch(async (error) => {
        const tookSec = (performance.now() - startedAt) / 1000;
        if (servedBy !== null) await breakOff({ model: servedBy, tookSec, settings: chosen });
        throw error;
      })
      .finally(() => heard.abort());
    await kept;
    const { length } = transcript.segments;
    return length === 0
      ? 'No speech was found.'
      : `Done: ${length === 1 ? '1 segment' : `${length} segments`}.`;
  }

  /** What had arrived is a take as well: hours of text outlive a server that went away, and a reload after it. */
  async function breakOff({ model, tookSec, settings: chosen }) {
    const { segments } = transcript;
    if (answer !== null || segments.length === 0 || opened !== null) return;
    const text = segments.map((segment) => segment.text).join('');
    const arrived = { text: text.trim(), segments, duration: segments.at(-1).end, model, incomplete: true };
    settings = chosen;
    showAnswer(arrived, tookSec, '');
    const take = { name, answer: arrived, tookSec, settings, language: '', names: speakers.names };
    await soon(recent.keep(take, file));
  }

  /** @param step of fetching.js */
  function showFetching(step) {
    if (step !== null) {
      job.say(`${step.doing} ${step.model}.`);
      el('progress-note').textContent = sizeOf(step.doneBytes, step.totalBytes);
      if (step.totalBytes > 0) el('progress').value = Math.min(1, step.doneBytes / step.totalBytes);
      else el('progress').removeAttribute('value');
    } else if (el('progress-note').textContent !== '') {
      job.say('Transcribing.');
      el('progress-note').textContent = '';
      el('progress').removeAttribute('value');
    }
  }

  /** The result is far below the button on a narrow screen. */
  function showPlayer() {
    const { top } = el('player').getBoundingClientRect();
    if (top < 0 || el('result').getBoundingClientRect().top > innerHeight - 100)
      el('player').scrollIntoView();
  }

  /** @param spans segments, or the turns of the speakers, which may overlap */
  function showSpans(spans) {
    player.showSpans(
      spans.map(({ start, end, speaker }) =>
        speaker === undefined
          ? { start, end }
          : { start, end, lane: speakers.laneOf(speaker), color: `--speaker-${speakers.colorOf(speaker)}` },
      ),
      Math.max(1, speakers.count),
    );
  }

  /** Ends when the take is kept in the browser, or cannot be. */
  async function finish({ type: _, ...done }, tookSec, chosen) {
    const code = choices.codeOf(done.language);
    settings = chosen;
    showAnswer(done, tookSec, code);
    const take = { name, answer: done, tookSec, settings, language: code, names: speakers.names };
    if (opened === null) await soon(recent.keep(take, file));
    else {
      files.finish(opened, done, tookSec, settings);
      await soon(opened.take);
    }
  }

  function showAnswer(done, tookSec, code) {
    answer = done;
    const { segments, words, model, route, language, duration, incomplete, dropped = [] } = done;
    if (player.durationSec === 0) player.setDuration(duration);
    speakers.finish(done.speakers ?? []);
    transcript.finish(done);
    transcript.setLanguage(code);
    showSpans(done.turns ?? segments);
    const speed = duration / tookSec;
    el('facts').replaceChildren(
      badge(model, 'badge accent'),
      ...(incomplete ? [badge('incomplete', 'badge warn')] : [badge(route)]),
      ...(segments.length === 0 || language === undefined ? [] : [badge(language)]),
      badge(`${duration < 60 ? `${duration.toFixed(1)} s` : shortTime(duration)} of audio`),
      badge(`${tookSec.toFixed(tookSec < 1 ? 2 : 1)} s, ${speed.toFixed(speed < 10 ? 1 : 0)}× real time`),
    );
    el('facts').hidden = false;
    el('estimate').hidden = file === null || segments.length === 0 || words !== undefined;
    for (const { start, end, reason } of dropped) {
      const what = reason === 'damaged' ? 'The file is damaged' : 'Nothing usable was heard';
      hint(`${what} from ${shortTime(start)} to ${shortTime(end)} (${reason}).`);
    }
  }

  /* The text that can be taken away */

  createMenu(el('exports'), ({ dataset: { download: kind, translated } }) => {
    const segments = speakers.renamed(transcript.segments);
    const whole = speakers.renamed(transcript.edits.applied(answer));
    const made = [kind, segments, whole, name, translation.segments];
    const given =
      translated === undefined
        ? download(...made)
        : toTranslated(...made).then(({ blob, name: fileName }) => save(blob, fileName));
    given.catch(({ message }) => job.fail(`The file could not be made: ${message}`));
  });
  el('copy-text').addEventListener('click', async ({ currentTarget }) => {
    const lines = transcript.segments.map(({ text }) => text.trim()).join('\n');
    const text = speakers.count > 0 ? toText(speakers.renamed(transcript.segments)).trim() : lines;
    job.say(await copy(text, currentTarget, el('segments')));
  });
  function showStart() {
    const isNothing = file === null && (files.count === 0 || files.isAside);
    el('start').disabled = isNothing || source.isRecording;
  }

  function clear() {
    answer = null;
    settings = null;
    reading.clear();
    translation.clear();
    speakers.clear();
    showSpans([]);
    for (const id of ['problem', 'facts', 'hints', 'estimate', 'take', 'progress']) el(id).hidden = true;
    el('hints').replaceChildren();
  }

  return {
    setModels(list) {
      choices.setModels(list);
      if (!job.isRunning) offerTranslation();
    },
    say: choices.say,
    code: () => ({ fileName: file?.name ?? 'speech.mp3', fields: toFields(choices.read()) }),
  };
}

/** With speakers, each delta is followed by an event with its text and its speaker. */
function partOf({ type, start, end, text, delta, speaker }, withSpeaker) {
  if (withSpeaker)
    return type === 'transcript.text.segment' ? { start, end, text: ` ${text}`, speaker } : null;
  return type === 'transcript.text.delta' ? { start, end, text: delta } : null;
}

function hint(text) {
  const line = document.createElement('p');
  line.className = 'notice';
  line.textContent = text;
  el('hints').append(line);
  el('hints').hidden = false;
}

function badge(text, className = 'badge') {
  const span = document.createElement('span');
  span.className = className;
  span.textContent = text;
  return span;
}
