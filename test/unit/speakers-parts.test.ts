/** The parts of the diarization by themselves: windows, sets of speakers, what is embedded, clusters, words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { labelsFor, sharesOf } from '../../src/transcription/speakers/assignment.ts';
import { clusterVoices, createVoicePool } from '../../src/transcription/speakers/clustering.ts';
import { createLabels, matchKnown } from '../../src/transcription/speakers/names.ts';
import { overlappedSpeakers } from '../../src/transcription/speakers/overlapped.ts';
import { labeledByPiece, piecesOf, separated } from '../../src/transcription/speakers/pieces.ts';
import { decodePowerset, expectedSpeakers } from '../../src/transcription/speakers/segmentation.ts';
import { leastExpected, turnsOf } from '../../src/transcription/speakers/turns.ts';
import { cosine, unit } from '../../src/transcription/speakers/voice.ts';
import { framesToEmbed } from '../../src/transcription/speakers/window-analysis.ts';
import { createStretches } from '../../src/transcription/speakers/windows.ts';
import { bySpeaker } from '../../src/transcription/speakers/words.ts';
import { seeded, voiceOf } from '../voices.ts';

/** Where it says nothing: one speaker in each frame of a window. */
const expected = new Float32Array(589).fill(1);

function stretchesOf(length: number, blockSamples: number, windows = 4) {
  const stretches = createStretches(() => ({ stepFrames: 148, windows }));
  const found: { firstFrame: number; windows: number; frames: number; first: number; length: number }[] = [];
  let most = 0;
  const take = (stretch: ReturnType<typeof stretches.next>) => {
    if (stretch === null) return false;
    const { samples, ...where } = stretch;
    found.push({ ...where, first: samples[0] ?? -1, length: samples.length });
    return true;
  };
  for (let at = 0; at < length; at += blockSamples) {
    stretches.push(Float32Array.from({ length: Math.min(blockSamples, length - at) }, (_, i) => at + i));
    most = Math.max(most, stretches.held);
    while (take(stretches.next()));
  }
  take(stretches.tail());
  assert.equal(stretches.tail(), null);
  return { found, most };
}

test('stretches lie on one grid of frames, reach the end, and are the same for blocks of any size', () => {
  for (const length of [100, 16_000, 160_000, 160_100, 401_234, 1_000_000])
    for (const windows of [1, 4]) {
      const { found } = stretchesOf(length, 256_000, windows);
      for (const { firstFrame, first } of found) assert.equal(first, firstFrame * 270);
      const last = found.at(-1);
      assert(last !== undefined && Math.abs(length - (last.first + last.length)) < 1, `${length}`);
      const frames = Math.max(...found.map((stretch) => stretch.firstFrame + stretch.frames));
      assert(frames * 270 + 360 > length - 900, `${frames} frames of ${length} samples`);
      for (const blockSamples of [1600, 99_999])
        assert.deepEqual(stretchesOf(length, blockSamples, windows).found, found);
    }
});

test('the windows of stretches follow each other by one step, and only the last may end with the audio', () => {
  const { found } = stretchesOf(1_000_000, 256_000);
  const starts = found.flatMap(({ firstFrame, windows }) =>
    Array.from({ length: windows }, (_, i) => firstFrame + i * 148),
  );
  assert.deepEqual(
    starts.slice(0, -1),
    starts.slice(0, -1).map((_, i) => i * 148),
  );
});

test('stretches hold no more audio than one of them and the newest block', () => {
  assert(stretchesOf(2_000_000, 16_000).most <= 160_000 + 3 * 148 * 270 + 16_000 + 270);
  assert(stretchesOf(2_000_000, 16_000, 1).most <= 160_000 + 16_000 + 270);
});

test('the classes of the powerset are sets of at most two speakers', () => {
  const frame = (winner: number) => Array.from({ length: 7 }, (_, i) => (i === winner ? -0.1 : -4));
  const logProbs = Float32Array.from([0, 1, 2, 3, 4, 5, 6].flatMap(frame));
  assert.deepEqual([...decodePowerset(logProbs, 7)], [0, 1, 2, 4, 3, 5, 6]);
  assert.deepEqual([...decodePowerset(logProbs, 2)], [0, 1]);
  const doubtful = Float32Array.from([0.55, 0.05, 0.2, 0.05, 0.05, 0.05, 0.05].map(Math.log));
  assert.deepEqual(
    [undefined, 0.5, 0.4].map((least) => decodePowerset(doubtful, 1, least)[0]),
    [0, 0, 2],
  );
  assert.throws(() => decodePowerset(logProbs, 8), /8 frames/);
  assert.throws(() => expectedSpeakers(logProbs, 8), /8 frames/);
  const likely = [0, 1, 4].flatMap((c) => Array.from({ length: 7 }, (_, i) => Math.log(i === c ? 0.4 : 0.1)));
  const means = [...expectedSpeakers(Float32Array.from(likely), 3)];
  assert.deepEqual(
    means.map((mean) => mean.toFixed(2)),
    ['0.90', '1.20', '1.50'],
  );
});

test('stretches may have steps of their own, and their windows still follow each other', () => {
  const stretches = createStretches((frame) =>
    frame < 1000 ? { stepFrames: 74, windows: 17 } : { stepFrames: 148, windows: 9 },
  );
  stretches.push(new Float32Array(1_600_000));
  const starts: number[] = [];
  for (let stretch = stretches.next(); stretch !== null; stretch = stretches.next()) {
    assert(stretch.samples.length <= 480_000);
    for (let i = 0; i < stretch.windows; i += 1) starts.push(stretch.firstFrame + i * stretch.stepFrames);
  }
  assert(starts.length > 40);
  for (const [i, start] of starts.entries())
    if (i > 0) assert.equal(start - (starts[i - 1] ?? 0), i <= 17 ? 74 : 148);
});

test('a voice is what a speaker says alone, or else what there is, and nothing where that is too little', () => {
  const active = new Uint8Array(589);
  active.fill(1, 0, 30).fill(3, 30, 100).fill(1, 100, 200).fill(2, 200, 210).fill(4, 300, 310);
  const alone = framesToEmbed(active, 0);
  assert.deepEqual(
    [alone?.frames.length, alone?.frames[30], alone?.aloneSec],
    [130, 100, (130 * 270) / 16_000],
  );
  const other = framesToEmbed(active, 1); // 10 frames are 0.17 s
  assert.deepEqual([other?.frames.length, other?.frames[0], other?.aloneSec], [80, 30, 0]);
  assert.equal(framesToEmbed(active, 2), null);
});

test('a pool of voices stays small, loses no weight and keeps the speakers apart', () => {
  const pool = createVoicePool(64);
  const random = seeded(5);
  for (let i = 0; i < 5000; i += 1) {
    const voice = voiceOf(i % 5).map((x) => x + 0.05 * (random() - 0.5));
    pool.add({ direction: unit(voice), weight: 2 }, i * 148);
    assert(pool.points().length <= 64);
  }
  const total = pool.points().reduce((sum, { weight }) => sum + weight, 0);
  assert.equal(total, 10_000);
  const options = { maxPoints: 64, count: { min: 1, max: 9 } };
  assert.equal(clusterVoices(pool.points(), options).length, 5);
});

test('voices that are heard in the same windows are two speakers where others as alike are one', () => {
  const like = (share: number) => unit(voiceOf(0).map((x, i) => x + share * (voiceOf(1)[i] ?? 0)));
  const found = (windowOf: (i: number) => number) => {
    const pool = createVoicePool(20);
    for (let i = 0; i < 8; i += 1)
      pool.add({ direction: like(i % 2 === 0 ? 0 : 0.9), weight: 5 }, windowOf(i));
    return clusterVoices(pool.points(), { maxPoints: 20, count: { min: 1, max: 9 } }).length;
  };
  assert.equal(
    found((i) => i),
    1,
  );
  assert.equal(
    found((i) => Math.floor(i / 2)),
    2,
  );
});

test('one who says a few words in a long audio is no speaker, and a small group joins one that is a little alike', () => {
  const like = (share: number) => unit(voiceOf(0).map((x, i) => x + share * (voiceOf(1)[i] ?? 0)));
  const found = (...groups: [direction: Float32Array, weight: number][]) => {
    const pool = createVoicePool(20);
    for (const [i, [direction, weight]] of groups.entries()) pool.add({ direction, weight }, i);
    return clusterVoices(pool.points(), { maxPoints: 20, count: { min: 1, max: 9 } }).map(
      ({ weight }) => weight,
    );
  };
  assert.deepEqual(found([voiceOf(0), 100], [voiceOf(1), 60], [voiceOf(2), 3]), [100, 60]);
  assert.deepEqual(found([voiceOf(0), 100], [voiceOf(1), 60], [voiceOf(2), 6]), [100, 60, 6]);
  const alike = like(1.33); // at a cosine of about 0.6
  assert.deepEqual(found([voiceOf(0), 100], [alike, 7]), [107]);
  assert.deepEqual(found([voiceOf(0), 100], [alike, 70]), [100, 70]);
});

test('clustering refuses more points than it may compare', () => {
  const pool = createVoicePool(10);
  for (let i = 0; i < 8; i += 1) pool.add({ direction: voiceOf(i), weight: 1 }, i);
  const options = { maxPoints: 4, count: { min: 1, max: 9 } };
  assert.throws(() => clusterVoices(pool.points(), options), /8 points/);
});

test('voices that are alike are one speaker unless the request says that there are two', () => {
  const like = (share: number) => unit(voiceOf(0).map((x, i) => x + share * (voiceOf(1)[i] ?? 0)));
  const points = [0, 0.05, 0.1, 1, 0.95, 0.9].map((share) => ({ direction: like(share), weight: 5 }));
  const pool = createVoicePool(20);
  for (const [i, point] of points.entries()) pool.add(point, i);
  const found = (min: number, max: number) => {
    const options = { maxPoints: 20, count: { min, max } };
    return clusterVoices(pool.points(), options).map(({ weight }) => weight);
  };
  assert.deepEqual(found(1, 9), [30]);
  assert.deepEqual(found(2, 2), [15, 15]);
  assert.deepEqual(found(1, 0), []);
});

test('two voices of one window share a label only if they are alike', () => {
  const voice = (speaker: number) => ({
    direction: voiceOf(speaker),
    weight: 2,
    aloneSec: 2,
    pieces: [],
  });
  const blend = {
    direction: unit(voiceOf(0).map((x, i) => x + 0.9 * (voiceOf(1)[i] ?? 0))),
    weight: 2,
    aloneSec: 2,
    pieces: [],
  };
  const window = { firstFrame: 0, active: new Uint8Array(589), expected };
  const speakers = [voiceOf(0), voiceOf(1)];
  const labels = (voices: (typeof blend | null)[]) => labelsFor({ ...window, voices }, speakers, []);
  assert.deepEqual(labels([voice(0), blend, null]), [0, 1, -1]);
  assert.deepEqual(labels([blend, voice(0), null]), [1, 0, -1]);
  assert.deepEqual(labels([voice(0), voice(0), null]), [0, 0, -1]);
});

test('a speaker who is never heard alone has the label that the windows before gave the same frames', () => {
  const active = new Uint8Array(589).fill(1, 0, 300).fill(3, 300, 320);
  const before = {
    firstFrame: 0,
    active: new Uint8Array(589).fill(2, 400, 589),
    expected,
    labels: [0, 1, -1],
  };
  const window = {
    firstFrame: 148,
    active,
    expected,
    voices: [{ direction: voiceOf(0), weight: 3, aloneSec: 3, pieces: [] }, null, null],
  };
  assert.deepEqual(labelsFor(window, [voiceOf(0), voiceOf(1)], [before]), [0, 1, -1]);
});

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

test('a pause ends a piece, a long one is cut into equal parts, and a short one is none', () => {
  const runs = [range(0, 60), range(66, 100), range(110, 140), range(150, 175), range(200, 500)];
  const frames = runs.flat();
  assert.deepEqual(
    piecesOf(frames).map((piece) => [piece[0], piece.at(-1), piece.length]),
    [
      [0, 99, 94],
      [110, 139, 30],
      [200, 349, 150],
      [350, 499, 150],
    ],
  );
  assert.deepEqual(piecesOf([]), []);
});

const pieceOf = (speaker: number, from: number, to: number) => ({
  direction: voiceOf(speaker),
  weight: (to - from) / 60,
  from,
  to,
});

test('two persons whom a window takes for one become two, each with its own frames and voice', () => {
  const pieces = [pieceOf(0, 0, 120), pieceOf(1, 200, 300), pieceOf(0, 400, 500)];
  const mixed = {
    direction: unit(voiceOf(0).map((x, i) => x + (voiceOf(1)[i] ?? 0))),
    weight: 1,
    aloneSec: 8,
  };
  const active = new Uint8Array(589).fill(1, 0, 120).fill(3, 120, 130).fill(1, 200, 310).fill(1, 400, 500);
  const { active: found, voices } = separated({
    firstFrame: 5,
    active,
    expected,
    voices: [{ ...mixed, pieces }, null, null],
  });
  assert.deepEqual([found[50], found[125], found[250], found[305], found[450]], [1, 3, 8, 8, 1]);
  assert.deepEqual(
    voices.map((voice) => voice?.pieces.map(({ from }) => from)),
    [[0, 400], undefined, undefined, [200]],
  );
  for (const [local, speaker] of [
    [0, 0],
    [3, 1],
  ] as const)
    assert(cosine(voices[local]?.direction ?? mixed.direction, voiceOf(speaker)) > 0.999);
  const whole = {
    firstFrame: 5,
    active,
    expected,
    voices: [{ ...mixed, pieces: [pieceOf(0, 0, 120)] }, null, null],
  };
  assert.deepEqual(separated(whole), whole);
});

test('a short piece makes no speaker, and goes with the nearest where there are two', () => {
  const active = new Uint8Array(589).fill(1, 0, 120).fill(1, 150, 180).fill(1, 200, 300);
  const voicesOf = (pieces: ReturnType<typeof pieceOf>[]) =>
    separated({
      ...{ firstFrame: 0, active, expected },
      voices: [{ direction: voiceOf(0), weight: 1, aloneSec: 4, pieces }],
    }).voices;
  const short = pieceOf(2, 150, 180);
  assert.equal(voicesOf([pieceOf(0, 0, 120), short]).length, 1);
  const two = voicesOf([pieceOf(0, 0, 120), short, pieceOf(1, 200, 300)]);
  assert.deepEqual(
    two.map((voice) => voice?.pieces.map(({ from }) => from)),
    [[0], [150, 200]],
  );
  assert(cosine(two[1]?.direction ?? voiceOf(0), voiceOf(1)) > 0.999);
});

test('a window never gets more speakers than a byte has bits', () => {
  const voice = (first: number) => ({
    ...{ direction: voiceOf(first), weight: 1, aloneSec: 9 },
    pieces: [0, 1, 2, 3].map((i) => pieceOf(first + i, i * 100, i * 100 + 60)),
  });
  const active = new Uint8Array(589).fill(1);
  const { voices } = separated({ firstFrame: 0, active, expected, voices: [voice(0), voice(4), voice(8)] });
  assert.equal(voices.length, 6); // a second one would make nine
});

test('a piece that is clearly more like another speaker has the label of that one', () => {
  const speakers = [voiceOf(0), voiceOf(1), voiceOf(2)];
  const pieces = [pieceOf(0, 0, 100), pieceOf(2, 200, 300)];
  const voices = [{ direction: voiceOf(0), weight: 1, aloneSec: 3, pieces }, null, null];
  const active = new Uint8Array(589).fill(1, 0, 100).fill(1, 200, 290).fill(3, 290, 300);
  const labeled = labeledByPiece({ firstFrame: 0, active, expected, voices }, [0, 1, -1], speakers);
  assert.deepEqual(labeled.labels, [0, 1, -1, 2]);
  assert.deepEqual([labeled.active[50], labeled.active[250], labeled.active[295]], [1, 8, 3]);
});

test('nobody speaks where windows expect hardly a speaker, and as many as they expect where they do', () => {
  const window = (firstFrame: number, counts: number[], labels: number[]) => ({
    firstFrame,
    active: new Uint8Array(589).fill(3),
    expected: Float32Array.from({ length: 589 }, (_, frame) => counts[Math.floor(frame / 150)] ?? 0),
    labels,
  });
  const turns = (...windows: Parameters<typeof turnsOf>[0]) =>
    turnsOf(windows).map(({ speaker, start, end }) => [speaker, start.toFixed(1), end.toFixed(1)]);
  assert.deepEqual(turns(window(0, [1.9, 0.9, 0.55], [0, 1, -1])), [
    [1, '0.0', '2.6'],
    [0, '0.0', '5.1'],
  ]);
  // A second window that is sure of speech carries the first one.
  assert.deepEqual(turns(window(0, [0.9, 0.5], [1, 0, -1]), window(0, [0.9, 0.9], [2, 1, -1])), [
    [1, '0.0', '5.1'],
  ]);
  assert.deepEqual(turns(window(0, [0.9, 0.9], [1, -1, -1]), window(0, [0.9, 0.5], [1, -1, -1])), []);
});

test('where many frames are doubtful fewer speakers have to be expected', () => {
  const limit = (doubtful: number, expectedThere = 0.3) => {
    const expected = new Float32Array(589).fill(expectedThere, 0, doubtful).fill(0.9, doubtful, 500);
    const active = new Uint8Array(589).fill(1);
    return leastExpected([{ firstFrame: 0, active, expected, labels: [0, -1, -1] }]).toFixed(2);
  };
  assert.deepEqual([limit(0), limit(50), limit(150), limit(500)], ['0.60', '0.60', '0.40', '0.40']);
  assert.deepEqual([limit(500, 0), limit(500, 0.1)], ['0.60', '0.60']);
  const halfway = Number(limit(78)); // 0.185 of the others
  assert(halfway > 0.48 && halfway < 0.52, `${halfway}`);
});

test('one who is heard only while another speaks is a speaker where that lasts', () => {
  const blend = unit(voiceOf(0).map((x, i) => x + 0.8 * (voiceOf(1)[i] ?? 0)));
  const active = new Uint8Array(589).fill(1, 0, 300).fill(3, 300, 480);
  const window = (i: number, over = active) => ({
    firstFrame: i * 148,
    active: over,
    expected,
    voices: [
      { direction: voiceOf(0), weight: 1.2, aloneSec: 5, pieces: [] },
      { direction: blend, weight: 0.7, aloneSec: 0, pieces: [] },
      null,
    ],
  });
  const found = (windows: ReturnType<typeof window>[], labels = [0, 0, -1]) =>
    overlappedSpeakers(
      windows,
      windows.map((one) => ({ ...one, labels })),
      20,
    ).map(({ direction, weight }) => [cosine(direction, blend).toFixed(2), weight.toFixed(1)]);
  assert.deepEqual(found([0, 1, 2].map((i) => window(i))), [['1.00', '2.1']]);
  // Too short in all, not at once, or told apart by the labels already.
  assert.deepEqual(found([window(0), window(1)]), []);
  const inTurn = new Uint8Array(589).fill(1, 0, 300).fill(2, 300, 480);
  assert.deepEqual(found([0, 1, 2].map((i) => window(i, inTurn))), []);
  assert.deepEqual(
    found(
      [0, 1, 2].map((i) => window(i)),
      [0, 1, -1],
    ),
    [],
  );
});

test('labels are A to Z, then AA, without the names that are taken', () => {
  const labels = createLabels((speaker) => (speaker === 1 ? 'Anna' : undefined), ['B', 'Anna']);
  assert.deepEqual([5, 1, 7, 5].map(labels), ['A', 'Anna', 'C', 'A']);
  const many = createLabels(() => undefined);
  const names = Array.from({ length: 28 }, (_, i) => many(i));
  assert.deepEqual(names.slice(25), ['Z', 'AA', 'AB']);
});

const word = (text: string, start: number, end: number) => ({ text, start, end, tokens: [] });
const segment = (...words: ReturnType<typeof word>[]) => ({
  ...{
    seek: 0,
    start: words[0]?.start ?? 0,
    end: words.at(-1)?.end ?? 0,
    words,
    temperature: 0,
    avgLogprob: -0.1,
  },
  ...{ text: words.map(({ text }) => text).join(''), compressionRatio: 1, noSpeechProb: 0, language: 'en' },
});

test('a segment is cut where the speaker changes, and every word is kept once', () => {
  const turns = [
    { speaker: 'A', start: 0, end: 2 },
    { speaker: 'B', start: 2.1, end: 4 },
  ];
  const parts = bySpeaker(
    segment(word(' One', 0, 1), word(' two.', 1, 1.9), word(' Yes.', 2.2, 3)),
    turns,
    'A',
  );
  assert.deepEqual(
    parts.map(({ speaker, text, start, end }) => ({ speaker, text, start, end })),
    [
      { speaker: 'A', text: ' One two.', start: 0, end: 1.9 },
      { speaker: 'B', text: ' Yes.', start: 2.2, end: 3 },
    ],
  );
  assert.deepEqual(
    parts[1]?.words.map(({ speaker }) => speaker),
    ['B'],
  );
});

test('where two speak at once a word goes on with the speaker before it', () => {
  const turns = [
    { speaker: 'A', start: 0, end: 4 },
    { speaker: 'B', start: 1, end: 3 },
  ];
  const words = segment(word(' a', 0, 1), word(' b', 1, 2), word(' c', 2, 3), word(' d', 3, 4));
  assert.equal(bySpeaker(words, turns, 'B').length, 1);
});

test('the last word where two speak goes on with the speaker before, whose turn may end a little sooner', () => {
  const turns = [
    { speaker: 'A', start: 0, end: 2.95 },
    { speaker: 'B', start: 1, end: 3 },
  ];
  const word = { text: ' x', start: 2.5, end: 3, tokens: [] };
  const of = (before: string, last = word) =>
    bySpeaker({ start: 2, end: 3, words: [last] } as never, turns, before)[0]?.speaker;
  assert.deepEqual([of('A'), of('B')], ['A', 'B']);
  assert.equal(of('A', { ...word, start: 2.8 }), 'A');
  assert.equal(of('A', { ...word, start: 2.8, end: 3.1 }), 'A');
  assert.equal(of('A', { ...word, start: 2.9 }), 'A');
});

test('a word outside of all turns belongs to the nearest, and without turns to the speaker before', () => {
  const turns = [
    { speaker: 'A', start: 0, end: 1 },
    { speaker: 'B', start: 9, end: 10 },
  ];
  assert.equal(bySpeaker(segment(word(' x', 6, 7)), turns, 'A')[0]?.speaker, 'B');
  assert.equal(bySpeaker(segment(word(' x', 6, 7)), [], 'C')[0]?.speaker, 'C');
  assert.equal(bySpeaker(segment(), turns, 'A')[0]?.speaker, 'A');
});

test('a known voice names the speaker who is most like it, whoever comes first', () => {
  const at = (degrees: number) =>
    Float32Array.of(Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180));
  const known = [
    { name: 'Ann', direction: at(0) },
    { name: 'Bob', direction: at(60) },
  ];
  assert.deepEqual(matchKnown([at(40), at(5)], known), ['Bob', 'Ann']);
  assert.deepEqual(matchKnown([at(25), at(5)], known), ['Bob', 'Ann'], 'each voice names one speaker');
  assert.deepEqual(matchKnown([at(180)], known), [undefined]);
});

test('the share of a speaker is of the frames that both windows have', () => {
  const window = {
    firstFrame: 0,
    active: Uint8Array.of(1, 1, 1, 1),
    expected: new Float32Array(4),
    labels: [2],
  };
  const next = { ...window, firstFrame: 2, voices: [] };
  assert.deepEqual(sharesOf(next, 0, [window], 3), [0, 0, 1]);
  assert.deepEqual(sharesOf(next, 1, [window], 3), [0, 0, 0]);
});

test('where the windows disagree about who speaks, the speaker before goes on', () => {
  const window = (firstFrame: number, frames: number, label: number) => ({
    ...{ firstFrame, labels: [label] },
    active: new Uint8Array(frames).fill(1),
    expected: new Float32Array(frames).fill(1),
  });
  for (const [first, second] of [
    [1, 0],
    [0, 1],
  ] as const) {
    const turns = turnsOf([window(0, 30, first), window(10, 50, second)]);
    assert.deepEqual(
      turns.map(({ speaker, start }) => [speaker, start.toFixed(2)]),
      [
        [first, '0.00'],
        [second, '0.53'],
      ],
    );
  }
});
