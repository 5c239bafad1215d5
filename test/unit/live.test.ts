/** Where an utterance begins and ends, and which of its words are sent before it has ended. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createStableText } from '../../src/transcription/live/stable-text.ts';
import {
  createUtteranceDetector,
  type UtteranceEvent,
} from '../../src/transcription/live/utterance-detection.ts';
import type { Word } from '../../src/transcription/segment.ts';
import { createSegmenter, DEFAULT_SEGMENTER } from '../../src/transcription/speech/voice-activity.ts';

const windows = (...runs: [probability: number, count: number][]) =>
  runs.flatMap(([probability, count]) => Array<number>(count).fill(probability));

const { padding } = DEFAULT_SEGMENTER;
const PLACES = { first: 0, prefix: padding, context: padding };

function turnsIn(probabilities: number[], places: Partial<typeof PLACES> = {}) {
  const turns = createUtteranceDetector(DEFAULT_SEGMENTER, { ...PLACES, ...places });
  const events = probabilities.flatMap((p, i) =>
    turns.push(p).map((event): [at: number, event: UtteranceEvent] => [i + 1, event]),
  );
  return { events, turns };
}

test('an utterance begins with its padding once it is speech, and ends with the silence', () => {
  const { events } = turnsIn(windows([0, 30], [0.9, 20], [0, 30]), { prefix: 9 });
  assert.deepEqual(events, [
    [38, { type: 'started', start: 21 }],
    [66, { type: 'stopped', end: 66 }],
  ]);
});

test('a click is no utterance, and a file has none there either', () => {
  const click = windows([0, 30], [0.9, 5], [0, 40]);
  assert.deepEqual(turnsIn(click).events, []);
  assert.deepEqual(createSegmenter().push(Float32Array.from(click)), []);
});

test('an utterance does not begin before the end of the one before', () => {
  const { events } = turnsIn(windows([0.9, 20], [0, 17], [0.9, 20], [0, 20]), { prefix: 30 });
  const [, [, stopped], [, second]] = events as [unknown, [number, UtteranceEvent], [number, UtteranceEvent]];
  assert.deepEqual(
    [stopped, second],
    [
      { type: 'stopped', end: 36 },
      { type: 'started', start: 36 },
    ],
  );
});

test('an utterance that is ended early ends where it is, and the next one begins after that', () => {
  const turns = createUtteranceDetector({ ...DEFAULT_SEGMENTER, minSilence: 125 }, PLACES);
  assert.deepEqual(turns.end(), []);
  const push = (probability: number) => turns.push(probability);
  assert.deepEqual(windows([0.9, 20]).flatMap(push), [{ type: 'started', start: 0 }]);
  assert.deepEqual(windows([0, 6]).flatMap(push), []);
  assert.equal(turns.silence, 6);
  assert.deepEqual(turns.end(), [{ type: 'stopped', end: 26 }]);
  assert.deepEqual(turns.end(), []);
  assert.deepEqual(windows([0, 2], [0.9, 8]).flatMap(push), [{ type: 'started', start: 26 }]);
});

test('a sound that is no speech yet is not ended as an utterance', () => {
  const turns = createUtteranceDetector({ ...DEFAULT_SEGMENTER, minSilence: 125 }, PLACES);
  for (const probability of windows([0.9, 3], [0, 6])) turns.push(probability);
  assert.deepEqual([turns.silence, turns.end()], [6, []]);
});

test('speech without a pause is cut where a file would be cut', () => {
  const long = windows([0.9, 700], [0.6, 1], [0.9, 300]);
  const [span] = createSegmenter().push(Float32Array.from(long));
  const { events } = turnsIn(long);
  assert.equal(span?.end, 700);
  assert.deepEqual(
    events.slice(1).map(([, event]) => event),
    [
      { type: 'stopped', end: 700 },
      { type: 'started', start: 700, continued: true },
    ],
  );
  const { start, end } = createSegmenter(DEFAULT_SEGMENTER, { continued: true }).push(
    Float32Array.from([...long.slice(700), ...windows([0, 30])]),
  )[0] ?? { start: 0, end: 0 };
  assert.deepEqual([start, end], [0, 307]);
});

test('the rest of speech that was cut is heard, however short or soft it is', () => {
  for (const rest of [windows([0.2, 1], [0.9, 7]), windows([0.2, 1], [0.45, 20])]) {
    const { events } = turnsIn([...windows([0.95, 870]), ...rest, ...windows([0, 40])]);
    assert.deepEqual(
      events.map(([, { type }]) => type),
      ['started', 'stopped', 'started', 'stopped'],
    );
    const [, , [, second]] = events as [unknown, unknown, [number, UtteranceEvent]];
    assert.deepEqual(second, { type: 'started', start: 870, continued: true });
    const inExcerpt = (continued: boolean) =>
      createSegmenter(DEFAULT_SEGMENTER, { continued }).push(
        Float32Array.from([...rest, ...windows([0, 40])]),
      );
    assert.deepEqual([inExcerpt(true).length, inExcerpt(false).length], [1, 0]);
  }
  const nothing = createSegmenter(DEFAULT_SEGMENTER, { continued: true });
  assert.deepEqual(nothing.push(Float32Array.from(windows([0.2, 40]))), []);
});

test('what was said grows with speech only', () => {
  const { turns } = turnsIn(windows([0, 10], [0.9, 10]));
  const before = turns.said;
  for (let i = 0; i < 8; i += 1) turns.push(0);
  assert.deepEqual([turns.said, turns.silence], [before, 8]);
  turns.push(0.9);
  assert.deepEqual([turns.said > before, turns.silence], [true, 0]);
});

const words = (text: string, probability = 0.95): Word[] =>
  text.split(/(?= )/).map((piece) => ({
    text: piece,
    start: 0,
    end: 0,
    tokens: [{ id: 1, bytes: Buffer.from(piece), logprob: Math.log(probability) }],
  }));

test('a word is sent when it was heard twice in a row at its place', () => {
  const stable = createStableText('medium');
  assert.equal(stable.update(words(' Ask not what.')), '');
  assert.equal(stable.update(words(' Ask not what your.')), 'Ask not what');
  assert.equal(stable.update(words(' Ask not what you can')), '');
  assert.equal(stable.end(words(' Ask not, what you can do.')), ' you can do.');
});

test('a doubtful word waits, and so do those after it', () => {
  const stable = createStableText('medium');
  const heard = [...words(' Ask'), ...words(' knot', 0.4), ...words(' what')];
  stable.update(heard);
  assert.equal(stable.update(heard), 'Ask');
  assert.equal(stable.end(words(' Ask not what.')), ' not what.');
});

test('the last word of a text must be found three times, for it may be the beginning of another', () => {
  const stable = createStableText('medium');
  stable.update(words(' Press 2 to 4'));
  assert.equal(stable.update(words(' Press 2 to 4')), 'Press 2 to');
  assert.equal(stable.update(words(' Press 2 to forward')), '');
  assert.equal(stable.update(words(' Press 2 to forward')), '');
  assert.equal(stable.update(words(' Press 2 to forward')), ' forward');
});

test('the first word may be less sure than the others, and the soonest rule takes them all', () => {
  const heard = [...words(' Press', 0.55), ...words(' a', 0.55), ...words(' key now')];
  const sent = (['minimal', 'low', 'medium', 'high', 'xhigh'] as const).map((delay) => {
    const stable = createStableText(delay);
    stable.update(heard);
    return stable.update(heard);
  });
  assert.deepEqual(sent, ['Press a key now', 'Press', 'Press', '', '']);
});

test('a word that stays for five hearings may be less sure than one that is new', () => {
  const stable = createStableText('medium');
  const heard = [...words(' Ask not'), ...words(' what', 0.8), ...words(' your')];
  const sent = Array.from({ length: 6 }, () => stable.update(heard));
  assert.deepEqual(sent, ['', 'Ask not', '', '', ' what your', '']);
});

test('the marks after the last word are sent with the next one', () => {
  const stable = createStableText('minimal');
  for (const text of [' Yes.', ' Yes, I', ' Yes, I see']) stable.update(words(text));
  assert.equal(stable.end(words(' Yes, I see it.')), ' see it.');
  const sent = createStableText('minimal');
  sent.update(words(' Yes.'));
  assert.equal(sent.update(words(' Yes, I')), 'Yes');
  assert.equal(sent.update(words(' Yes, I see')), ', I');
});

test('words that turn out wrong stay as they were sent, and nothing follows them', () => {
  const stable = createStableText('minimal');
  stable.update(words(' I scream'));
  assert.equal(stable.update(words(' I scream')), 'I scream');
  assert.equal(stable.update(words(' Ice cream is')), '');
  assert.equal(stable.update(words(' Ice cream is')), '');
  assert.equal(stable.end(words(' Ice cream is cold.')), '');
});
