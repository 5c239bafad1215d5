/** The transcription tab: one sound at a time, with its text along a waveform and the same request as code. */
import { shortTime, toText } from './captions.js';
import { createChoices } from './choices.js';
import { createFiles } from './files.js';
import { createJob } from './job.js';
import { createPlayer } from './player.js';
import { hasKey, toFields } from './request.js';
import { SNIPPETS } from './snippets.js';
import { createSource } from './source.js';
import { createSpeakers } from './speakers.js';
import { copy, download } from './take.js';
import { createTranscript } from './transcript.js';

const el = (id) => document.getElementById(id);

/** @param on file() when the visitor has chosen a sound, done() after a transcription */
export function createTranscription(client, on) {
  let file = null;
  /** Holds the last event of the last run. */
  let answer = null;

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
  const job = createJob({
    start: el('start'),
    stop: el('cancel'),
    status: el('status'),
    problem: el('problem'),
    busy: el('busy'),
  });
  const files = createFiles({ box: el('files'), rows: el('file-rows') }, job, client);
  const source = createSource(
    { input: el('file'), button: el('record'), label: el('record-label'), note: el('record-note') },
    {
      files(chosen) {
        on.file();
        // One file has the page to itself, unless others are being transcribed.
        if (chosen.length === 1 && !(files.count > 0 && job.isRunning)) take(chosen[0]);
        else queue(chosen);
        showStart();
        showCode();
      },
      recording(levels, sec) {
        if (sec === 0) {
          begin();
          job.say('Recording.');
        }
        player.showRecording(levels, sec);
      },
      refused: job.fail,
    },
  );

  function take(chosen) {
    begin();
    file = chosen;
    job.say(`Ready: ${file.name}.`);
    player.load(file);
  }

  function queue(chosen) {
    if (files.count === 0) {
      begin();
      file = null;
      el('player').hidden = true;
    }
    files.add(chosen);
    if (!job.isRunning) job.say(`Ready: ${files.count} files.`);
  }

  /** Prepares the page for a new sound, by removing everything that belonged to the last one. */
  function begin() {
    job.drop();
    files.clear();
    clear();
    speakers.forgetNames();
    el('player').hidden = false;
    showStart();
  }

  /* The run */

  el('form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (job.isRunning || source.isRecording) return;
    if (files.count > 0) files.run(choices.read()).then(on.done);
    else if (file !== null) run();
  });
  el('measure').addEventListener('click', () => {
    el('word-times').checked = true;
    showCode();
    run();
  });

  /** What was transcribed before stays until the gateway has taken the new request. */
  async function run() {
    // The result is far below the button on a narrow screen.
    if (el('result').getBoundingClientRect().top > innerHeight - 100) el('player').scrollIntoView();
    const chosen = choices.read(); // the boxes may change while it runs
    const isCurrent = await job.run((signal, served) =>
      served(() =>
        attempt(chosen, signal).finally(() => {
          el('progress').hidden = true;
          el('progress-note').textContent = '';
        }),
      ),
    );
    if (!isCurrent) return; // the visitor has chosen another sound meanwhile
    el('take').hidden = transcript.segments.length === 0;
  }

  async function attempt(chosen, signal) {
    const startedAt = performance.now();
    job.say(`Sending ${file.name}.`);
    el('progress').removeAttribute('value');
    el('progress').hidden = false;
    await client.transcribe(file, toFields(chosen), signal, (event) => {
      if (signal.aborted) return;
      if (event.type === 'accepted') {
        clear();
        el('progress').hidden = false;
        job.say('Transcribing.');
      }
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
      if (event.type === 'transcript.text.done') finish(event, (performance.now() - startedAt) / 1000);
    });
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
    job.say(segments.length === 0 ? 'No speech was found.' : `Done: ${count}.`);
    on.done();
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
    job.say(await copy(text, currentTarget, el('segments')));
  });
  el('copy-code').addEventListener('click', async ({ currentTarget }) =>
    job.say(await copy(el('code').textContent, currentTarget, el('code'))),
  );
  for (const radio of document.querySelectorAll('[name="code"]')) radio.addEventListener('change', showCode);

  function showCode() {
    const { value } = document.querySelector('[name="code"]:checked');
    el('code').textContent = SNIPPETS[value]({
      base: new URL('.', location.href).href.slice(0, -1),
      fileName: file?.name ?? 'speech.mp3',
      fields: toFields(choices.read()),
      withKey: hasKey(),
    });
  }

  function showStart() {
    el('start').disabled = (file === null && files.count === 0) || source.isRecording;
  }

  function clear() {
    answer = null;
    transcript.clear();
    speakers.clear();
    showSpans([]);
    for (const id of ['problem', 'facts', 'hints', 'estimate', 'take', 'progress']) el(id).hidden = true;
    el('hints').replaceChildren();
  }

  showCode();
  return {
    setModels: choices.setModels,
    say: choices.say,
    showCode,
  };
}

/** Where speakers are told apart, each delta is followed by an event that has its text and its speaker as well. */
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
