/** The bench of diarization knows who speaks when in the conversations that it makes: `npm run bench -- speakers`. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { seededRandom } from '../../bench/common/random.ts';
import { RATE } from '../../bench/common/samples.ts';
import { planned, spansOf } from '../../bench/speakers/conversations/plan.ts';
import { rttmLines, stmLines } from '../../bench/speakers/conversations/reference.ts';
import { rendered } from '../../bench/speakers/conversations/rendering.ts';
import { type Conversation, conversations, isTuning } from '../../bench/speakers/conversations/set.ts';
import { type Span, speechSpans } from '../../bench/speakers/conversations/speech-spans.ts';
import { wav } from '../wav.ts';

/** Speech of one person, as far as a level can tell: a tone of that pitch between two silences. */
function recording(pitch: number, seconds: number): Float32Array {
  return Float32Array.from({ length: (seconds + 0.6) * RATE }, (_, i) => {
    const at = i / RATE - 0.3;
    return at < 0 || at >= seconds ? 0 : 0.3 * Math.sin(2 * Math.PI * pitch * (i / RATE));
  });
}

/** The level of one pitch in a part of the samples (Goertzel's algorithm). */
function levelAt(pitch: number, samples: Float32Array): number {
  const turn = 2 * Math.cos((2 * Math.PI * pitch) / RATE);
  let [last, before] = [0, 0];
  for (const sample of samples) [before, last] = [last, sample + turn * last - before];
  return Math.sqrt(Math.max(0, last * last + before * before - turn * last * before)) / samples.length;
}

const talk = { speakers: 3, seconds: 60, overlap: 0.15, turnSec: [0.5, 6] as const };
const talking: Conversation = {
  ...talk,
  name: 'clean-3-a',
  conversationClass: 'clean',
  tuning: true,
  snrDb: null,
  telephone: false,
  distant: false,
  room: false,
};
const said = (_: number, seconds: number) => ({ seconds, spans: [{ start: 0, end: seconds }] });
const within = (spans: readonly Span[], at: number, margin: number) =>
  spans.some(({ start, end }) => at >= start - margin && at < end + margin);

test('the turns of a conversation are where its speakers are heard, and nowhere else', () => {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-speakers-'));
  try {
    const pitches = [400, 1000, 2300];
    const cast = pitches.map((pitch) => ({
      id: `voice-${pitch}`,
      utterances: [0.7, 1.3, 2.1].map((seconds) => {
        const audio = join(folder, `${pitch}-${seconds}.wav`);
        writeFileSync(audio, wav(recording(pitch, seconds)));
        return { audio, text: `for ${seconds}` };
      }),
    }));
    const { samples, speakers, words } = rendered(talking, cast, seededRandom(7));
    assert(samples.length > 30 * RATE, `${samples.length / RATE} s`);
    assert.deepEqual(
      speakers.map(({ id }) => id),
      cast.map(({ id }) => id),
    );
    for (const [i, { id, spans }] of speakers.entries()) {
      assert(spans.length > 0, `${id} says nothing`);
      let [wrong, frames] = [0, 0];
      for (let at = 0; at + 0.1 < samples.length / RATE; at += 0.1) {
        const middle = at + 0.05;
        // A frame on an edge, or in a pause that was bridged, is neither.
        if (within(spans, middle, 0.06) && !within(spans, middle, -0.06)) continue;
        const level = levelAt(pitches[i] ?? 0, samples.subarray(at * RATE, (at + 0.1) * RATE));
        frames += 1;
        if (within(spans, middle, 0) !== level > 0.004) wrong += 1;
      }
      // Pauses of less than 0.25 s inside of a turn belong to it.
      assert(frames > 200 && wrong / frames < 0.06, `${id}: ${wrong} of ${frames} frames disagree`);
    }
    assert(words?.every(({ text, start, end }) => Math.abs(end - start - Number(text.slice(4))) < 0.03));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** The share of the time with speech in which two or more speak. */
function overlapShare(spans: readonly (readonly Span[])[]): number {
  const edges = spans
    .flat()
    .flatMap(({ start, end }) => [
      { at: start, step: 1 },
      { at: end, step: -1 },
    ])
    .toSorted((a, b) => a.at - b.at);
  let [count, before, some, several] = [0, 0, 0, 0];
  for (const { at, step } of edges) {
    if (count > 0) some += at - before;
    if (count > 1) several += at - before;
    [count, before] = [count + step, at];
  }
  return some === 0 ? 0 : several / some;
}

test('a plan hears every speaker, never one of them twice at once, and comes out the same', () => {
  for (const overlap of [0, 0.1, 0.2]) {
    const turns = planned({ ...talk, seconds: 300, overlap }, said, seededRandom(1));
    const spans = [0, 1, 2].map((speaker) => spansOf(turns, speaker));
    assert(spans.every((own) => own.length > 3));
    assert(spans.every((own) => own.slice(1).every(({ start }, i) => start >= (own[i]?.end ?? 0))));
    assert(Math.abs(overlapShare(spans) - overlap) < 0.05, `${overlapShare(spans)} for ${overlap}`);
    assert(
      turns.every(({ start, said: { seconds } }) => seconds >= 0.5 && seconds <= 6 && start + seconds <= 300),
    );
    assert.deepEqual(planned({ ...talk, seconds: 300, overlap }, said, seededRandom(1)), turns);
  }
  const alone = planned({ ...talk, speakers: 1, overlap: 0 }, said, seededRandom(1));
  assert(alone.length > 3 && alone.every(({ speaker }) => speaker === 0));
});

test('the set is longer than an hour, and each half of it is chosen by the names', () => {
  const all = conversations();
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
  assert(all.every(({ name, tuning }) => isTuning(name) === tuning));
  for (const tuning of [true, false]) {
    const half = all.filter((one) => one.tuning === tuning);
    const talks = half.filter(
      ({ conversationClass }) => conversationClass !== 'meeting' && conversationClass !== 'room',
    );
    assert.deepEqual([...new Set(talks.map(({ speakers }) => speakers))].toSorted(), [1, 2, 3, 4, 5, 6]);
    assert(half.length - talks.length >= 14);
    assert(talks.reduce((sum, { seconds }) => sum + seconds, 0) > 40 * 60);
  }
  assert(all.reduce((sum, { seconds }) => sum + seconds, 0) > 60 * 60);
});

test('speech is found between silence, also where the recording has noise', () => {
  const quiet = speechSpans(recording(300, 1));
  assert.equal(quiet.length, 1);
  assert(Math.abs((quiet[0]?.start ?? 0) - 0.3) < 0.02 && Math.abs((quiet[0]?.end ?? 0) - 1.3) < 0.02);
  const random = seededRandom(3);
  const noisy = speechSpans(recording(300, 1).map((sample) => sample + 0.01 * (random() - 0.5)));
  assert.deepEqual(
    noisy.map(({ start, end }) => [start.toFixed(1), end.toFixed(1)]),
    [['0.3', '1.3']],
  );
  assert.deepEqual(speechSpans(new Float32Array(100)), []);
});

test('turns and words are written as RTTM and STM in order of time', () => {
  const [first, second] = [
    { id: 'a', spans: [{ start: 2, end: 3.25 }] },
    { id: 'b', spans: [{ start: 0.5, end: 2.1 }] },
  ];
  assert.equal(
    rttmLines('file', [first, second]),
    'SPEAKER file 1 0.500 1.600 <NA> <NA> b <NA> <NA>\nSPEAKER file 1 2.000 1.250 <NA> <NA> a <NA> <NA>\n',
  );
  assert.equal(
    stmLines('file', [{ speaker: 'a', start: 2, end: 3, text: 'Oh, hello.' }]),
    'file 1 a 2.000 3.000 Oh, hello.\n',
  );
});
