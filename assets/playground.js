/** This is the playground: it sends one sound at a time to this gateway's own API. */
import { createKeyDialog } from './key-dialog.js';
import { shortTime, toText } from './playground/captions.js';
import { createChoices } from './playground/choices.js';
import { createLive } from './playground/live.js';
import { createPlayer } from './playground/player.js';
import { createClient, hasKey, RequestFailed, toFields } from './playground/request.js';
import { SNIPPETS } from './playground/snippets.js';
import { createSource } from './playground/source.js';
import { createSpeakers } from './playground/speakers.js';
import { copy, download } from './playground/take.js';
import { createTranscript } from './playground/transcript.js';
import { createWaiting } from './playground/wait.js';

const el = (id) => document.getElementById(id);

let file = null;
/** Holds the last event of the last run. */
let answer = null;
/** Aborts the run in progress; null when none runs. */
let running = null;

const keyDialog = {
  dialog: el('key-dialog'),
  input: el('key'),
  wrong: el('key-wrong'),
  cancel: el('key-cancel'),
};
const client = createClient(createKeyDialog(keyDialog));
const choices = createChoices(el('form'), showCode);
const speakers = createSpeakers(el('speakers-box'), el('speakers'), () => transcript.rename());
const transcript = createTranscript(el('transcript'), el('segments'), (sec) => player.seek(sec), speakers);
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
const busyBox = {
  box: el('busy'),
  text: el('busy-text'),
  countdown: el('countdown'),
  now: el('retry-now'),
  after: el('cancel'),
};
const waitForSlot = createWaiting(busyBox, say);
const source = createSource(
  { input: el('file'), button: el('record'), label: el('record-label'), note: el('record-note') },
  {
    file(chosen) {
      begin();
      file = chosen;
      showButtons();
      showCode();
      say(`Ready: ${file.name}.`);
      player.load(file);
    },
    recording(levels, sec) {
      if (sec === 0) {
        begin();
        say('Recording.');
      }
      player.showRecording(levels, sec);
    },
    refused: fail,
  },
);

const liveNames = ['label', 'stop', 'copy', 'box', 'status', 'problem', 'text', 'finals', 'partials'];
const liveParts = Object.fromEntries(liveNames.map((name) => [name, el(`live-${name}`)]));
createLive({ button: el('live'), ...liveParts }, () => choices.read(), client.models);

/** Prepares the page for a new sound, by removing everything that belonged to the last one. */
function begin() {
  running?.abort();
  running = null;
  clear();
  el('player').hidden = false;
  showButtons();
}

/* The run */

el('form').addEventListener('submit', (event) => {
  event.preventDefault();
  if (file !== null && running === null && !source.isRecording) run();
});
for (const id of ['cancel', 'stop-waiting']) el(id).addEventListener('click', () => running?.abort());
el('measure').addEventListener('click', () => {
  el('word-times').checked = true;
  showCode();
  run();
});

async function run() {
  const mine = new AbortController();
  running = mine;
  clear();
  showButtons();
  // The result is far below the button on a narrow screen.
  if (el('result').getBoundingClientRect().top > innerHeight - 100) el('player').scrollIntoView();
  try {
    await untilServed(toFields(choices.read()), mine.signal);
  } catch (error) {
    if (running !== mine) return; // the visitor has chosen another sound meanwhile
    if (mine.signal.aborted) say('Cancelled.');
    else if (error instanceof RequestFailed) fail(error.message, error.requestId);
    else throw error;
  } finally {
    if (running === mine) {
      running = null;
      el('progress').hidden = true;
      el('take').hidden = transcript.segments.length === 0;
      showButtons();
    }
  }
}

async function untilServed(fields, signal) {
  for (;;) {
    try {
      return await attempt(fields, signal);
    } catch (error) {
      if (error.code !== 'slot_busy') throw error;
      el('progress').hidden = true;
      await waitForSlot(error, signal);
    }
  }
}

async function attempt(fields, signal) {
  const startedAt = performance.now();
  say(`Sending ${file.name}.`);
  el('progress').removeAttribute('value');
  el('progress').hidden = false;
  await client.transcribe(file, fields, signal, (event) => {
    if (signal.aborted) return;
    if (event.type === 'accepted') say('Transcribing.');
    if (event.type === 'warning') hint(`${event.message}.`);
    if (event.type === 'transcript.text.delta') {
      if (player.durationSec > 0) el('progress').value = Math.min(1, event.end / player.durationSec);
    }
    const said = partOf(event, choices.read().diarize);
    if (said !== null) {
      speakers.hear(said.speaker);
      transcript.add({ id: transcript.segments.length, ...said });
      showSpans(transcript.segments);
    }
    if (event.type === 'transcript.text.done') finish(event, (performance.now() - startedAt) / 1000);
  });
}

/** Where speakers are told apart, each delta is followed by an event that has its text and its speaker as well. */
function partOf({ type, start, end, text, delta, speaker }, withSpeaker) {
  if (withSpeaker)
    return type === 'transcript.text.segment' ? { start, end, text: ` ${text}`, speaker } : null;
  return type === 'transcript.text.delta' ? { start, end, text: delta } : null;
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

function finish({ type: _, ...done }, tookSec) {
  answer = done;
  const { segments, words, model, route, language, duration, dropped = [] } = done;
  if (player.durationSec === 0) player.setDuration(duration);
  speakers.finish(done.speakers ?? []);
  transcript.finish(done);
  transcript.setLanguage(choices.codeOf(language));
  showSpans(done.turns ?? segments);
  const speed = duration / tookSec;
  el('facts').replaceChildren(
    badge(model, 'badge accent'),
    badge(route),
    ...(segments.length === 0 ? [] : [badge(language)]),
    badge(`${duration.toFixed(1)} s of sound`),
    badge(`${tookSec.toFixed(tookSec < 1 ? 2 : 1)} s, ${speed.toFixed(speed < 10 ? 1 : 0)}× real time`),
  );
  el('facts').hidden = false;
  el('estimate').hidden = segments.length === 0 || words !== undefined;
  for (const { start, end, reason } of dropped) {
    hint(`Nothing usable was heard from ${shortTime(start)} to ${shortTime(end)} (${reason}).`);
  }
  const count = segments.length === 1 ? '1 segment' : `${segments.length} segments`;
  say(segments.length === 0 ? 'No speech was found.' : `Done: ${count}.`);
  refreshModels();
}

/* The text that can be taken away */

el('take').addEventListener('click', ({ target }) => {
  const kind = target.dataset.download;
  if (kind !== undefined)
    download(kind, speakers.renamed(transcript.segments), speakers.renamed(answer), file.name);
});
el('copy-text').addEventListener('click', async ({ currentTarget }) => {
  const lines = transcript.segments.map(({ text }) => text.trim()).join('\n');
  const text = speakers.count > 0 ? toText(speakers.renamed(transcript.segments)).trim() : lines;
  say(await copy(text, currentTarget, el('segments')));
});
el('copy-code').addEventListener('click', async ({ currentTarget }) =>
  say(await copy(el('code').textContent, currentTarget, el('code'))),
);
for (const radio of document.querySelectorAll('[name="code"]')) radio.addEventListener('change', showCode);

function showCode() {
  const { value } = document.querySelector('[name="code"]:checked');
  el('code').textContent = SNIPPETS[value]({
    base: location.origin,
    fileName: file?.name ?? 'speech.mp3',
    fields: toFields(choices.read()),
    withKey: hasKey(),
  });
}

/* The page */

function clear() {
  answer = null;
  transcript.clear();
  speakers.clear();
  showSpans([]);
  for (const id of ['problem', 'facts', 'hints', 'estimate', 'take', 'progress']) el(id).hidden = true;
  el('hints').replaceChildren();
}

/** When one button takes the place of another, the keyboard focus moves to it. */
function showButtons() {
  const focused = document.activeElement;
  el('start').disabled = file === null || source.isRecording;
  el('start').hidden = running !== null;
  el('cancel').hidden = running === null;
  if (focused === el('start') && running !== null) el('cancel').focus();
  if ((focused === el('cancel') || focused === el('stop-waiting')) && running === null) el('start').focus();
}

function say(text) {
  el('status').textContent = text;
}

function hint(text) {
  const line = document.createElement('p');
  line.className = 'notice';
  line.textContent = text;
  el('hints').append(line);
  el('hints').hidden = false;
}

function fail(message, requestId = null) {
  el('problem').textContent = requestId === null ? message : `${message}.\nRequest id: ${requestId}`;
  el('problem').hidden = false;
  say('That did not work.');
}

function badge(text, className = 'badge') {
  const span = document.createElement('span');
  span.className = className;
  span.textContent = text;
  return span;
}

async function refreshModels() {
  try {
    const list = await client.models();
    choices.setModels(list);
    if (list.length === 0) choices.say('No model can serve now; the gateway’s log says why.');
  } catch (error) {
    choices.say(`The models cannot be listed: ${error.message}`);
  }
  showCode();
}

showCode();
refreshModels();
