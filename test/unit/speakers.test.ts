/** Who speaks when, over scripted conversations: a whole file, a stream, known voices, and what stays in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BUDGETS } from '../../src/limits/budgets.ts';
import type { UnnumberedSegment } from '../../src/transcription/segment.ts';
import { createDiarization, type Turn } from '../../src/transcription/speakers/diarization.ts';
import { createOnlineDiarization } from '../../src/transcription/speakers/online.ts';
import { createSpeakerPass } from '../../src/transcription/speakers/session-pass.ts';
import { unit } from '../../src/transcription/speakers/voice.ts';
import { blocksOf, conversation, inTurns, type Said, scriptedVoices, seeded, voiceOf } from '../voices.ts';

const KINDS = { file: createDiarization, stream: createOnlineDiarization };

function optionsWith({ min = 1, max = 15 } = {}) {
  return {
    clustering: { maxPoints: BUDGETS.speakers.maxPoints, count: { min, max } },
    known: [] as { name: string; direction: Float32Array }[],
    signal: new AbortController().signal,
  };
}

async function turnsIn(
  said: readonly Said[],
  seconds: number,
  { kind = 'file' as keyof typeof KINDS, model = scriptedVoices(), options = optionsWith() } = {},
): Promise<Turn[]> {
  const diarization = KINDS[kind](model, options);
  for (const block of blocksOf(conversation(said, seconds))) await diarization.push(block);
  return diarization.finish();
}

const labelsOf = (turns: readonly Turn[]) => [...new Set(turns.map(({ speaker }) => speaker))].sort();

/** The share of 10 ms steps at which the turns name other speakers than the script, in the best naming of them. */
function errorOf(turns: readonly Turn[], said: readonly Said[], seconds: number): number {
  const labels = labelsOf(turns);
  const speakers = [...new Set(said.map(({ speaker }) => speaker))];
  const together = new Map<string, number>();
  const steps: { truth: number[]; heard: string[] }[] = [];
  for (let t = 0.005; t < seconds; t += 0.01) {
    const truth = said.filter(({ start, end }) => start <= t && t < end).map(({ speaker }) => speaker);
    const heard = turns.filter(({ start, end }) => start <= t && t < end).map(({ speaker }) => speaker);
    for (const a of truth)
      for (const b of heard) together.set(`${a} ${b}`, (together.get(`${a} ${b}`) ?? 0) + 1);
    steps.push({ truth, heard });
  }
  const named = new Map<string, number>();
  for (const [pair] of [...together].sort((a, b) => b[1] - a[1])) {
    const [speaker = '', label = ''] = pair.split(' ');
    if (!named.has(label) && ![...named.values()].includes(Number(speaker)))
      named.set(label, Number(speaker));
  }
  assert(labels.length > 0 || speakers.length === 0);
  let spoken = 0;
  let wrong = 0;
  for (const { truth, heard } of steps) {
    const right = heard.filter((label) => truth.includes(named.get(label) ?? -1)).length;
    spoken += truth.length;
    wrong += Math.max(truth.length, heard.length) - right;
  }
  return wrong / Math.max(1, spoken);
}

for (const kind of ['file', 'stream'] as const) {
  for (const speakers of [1, 2, 3, 4, 5, 6]) {
    test(`a ${kind} with ${speakers} speakers gives ${speakers} labels and their turns`, async () => {
      const said = inTurns(speakers, 120);
      const turns = await turnsIn(said, 120, { kind });
      assert.deepEqual(labelsOf(turns), [...'ABCDEF'].slice(0, speakers));
      const error = errorOf(turns, said, 120);
      assert(error < 0.02, `${error}`);
    });
  }

  test(`a ${kind} of silence has no turns, and neither has one without samples`, async () => {
    assert.deepEqual(await turnsIn([], 30, { kind }), []);
    assert.deepEqual(await turnsIn([], 0, { kind }), []);
  });

  test(`in a ${kind} two may speak at once`, async () => {
    const said = [
      { speaker: 0, start: 0, end: 8 },
      { speaker: 1, start: 6, end: 14 },
      { speaker: 0, start: 13, end: 20 },
      { speaker: 1, start: 21, end: 29 },
    ];
    const turns = await turnsIn(said, 30, { kind });
    assert.deepEqual(
      turns.map(({ speaker, start, end }) => [speaker, Math.round(start), Math.round(end)]),
      [
        ['A', 0, 8],
        ['B', 6, 14],
        ['A', 13, 20],
        ['B', 21, 29],
      ],
    );
  });

  test(`in a ${kind} a word of 0.5 s has a label that exists, and makes no new speaker`, async () => {
    const said = [...inTurns(2, 40), { speaker: 3, start: 40.2, end: 40.7 }];
    const turns = await turnsIn(said, 44, { kind });
    assert.deepEqual(labelsOf(turns), ['A', 'B']);
  });

  test(`a ${kind} of any length from a tenth of a second on is labeled to its end`, async () => {
    for (const seconds of [0.1, 3, 9.9, 10, 10.1, 12.5, 16, 21.3]) {
      const said = [{ speaker: 0, start: 0, end: seconds }];
      const turns = await turnsIn(said, seconds, { kind });
      if (seconds < 2) continue; // too short for a voice
      assert.deepEqual(labelsOf(turns), ['A'], `${seconds} s`);
      assert(Math.abs((turns.at(-1)?.end ?? 0) - seconds) < 0.06, `${seconds} s: ${JSON.stringify(turns)}`);
    }
  });

  test(`in a ${kind} known voices have their names, and others never get one of them`, async () => {
    const reference = (name: string, speaker: number) => ({ name, direction: unit(voiceOf(speaker)) });
    const options = { ...optionsWith(), known: [reference('Agent', 1), reference('A', 5)] };
    const turns = await turnsIn(inTurns(3, 60), 60, { kind, options });
    assert.deepEqual(labelsOf(turns), ['Agent', 'B', 'C']);
    const second = turns.find(({ start }) => start > 3.5);
    assert.equal(second?.speaker, 'Agent');
  });

  test(`a ${kind} that is cancelled ends with the reason`, async () => {
    const stop = new AbortController();
    const diarization = KINDS[kind](scriptedVoices(), { ...optionsWith(), signal: stop.signal });
    stop.abort(new Error('the client left'));
    await assert.rejects(diarization.push(new Float32Array(256_000)), /the client left/);
  });
}

test('a file has as many speakers as the request says', async () => {
  const said = inTurns(4, 240);
  for (const [min, max, found] of [
    [1, 15, 4],
    [1, 3, 3],
    [2, 2, 2],
    [4, 4, 4],
  ] as const) {
    const turns = await turnsIn(said, 240, { options: optionsWith({ min, max }) });
    assert.equal(labelsOf(turns).length, found, `${min} to ${max}`);
  }
});

test('a file tells five voices apart of whom no window knows more than three', async () => {
  const said = inTurns(5, 120, 1.8);
  const turns = await turnsIn(said, 120);
  assert.equal(labelsOf(turns).length, 5);
  const error = errorOf(turns, said, 120);
  assert(error < 0.05, `${error}`);
});

test('a file tells six noisy voices apart', async () => {
  const said = inTurns(6, 400);
  const model = scriptedVoices({ noise: 0.7, seed: 7 });
  const turns = await turnsIn(said, 400, { model });
  assert.equal(labelsOf(turns).length, 6);
  assert(errorOf(turns, said, 400) < 0.03);
});
test('a stream never has more speakers than the request allows', async () => {
  const turns = await turnsIn(inTurns(5, 100), 100, { kind: 'stream', options: optionsWith({ max: 2 }) });
  assert.equal(labelsOf(turns).length, 2);
});

test('known voices count among the speakers that a stream may have', async () => {
  const known = [1, 2].map((speaker) => ({ name: `Known ${speaker}`, direction: unit(voiceOf(speaker)) }));
  for (const max of [1, 2]) {
    const options = { ...optionsWith({ max }), known };
    const turns = await turnsIn(inTurns(3, 60), 60, { kind: 'stream', options });
    assert.equal(labelsOf(turns).length, max, String(labelsOf(turns)));
  }
});

test('a label that a stream has given stays: each part of the whole answer is the part that was sent', async () => {
  const random = seeded(3);
  const said: Said[] = [];
  for (let start = 0; start < 180; ) {
    const end = start + 1 + 5 * random();
    said.push({
      speaker: Math.floor(random() * Math.min(4, 1 + start / 30)),
      start,
      end: Math.min(180, end),
    });
    start = end + random() - 0.4;
  }
  const diarization = createOnlineDiarization(scriptedVoices({ noise: 1, seed: 2 }), optionsWith());
  const sent: { at: number; speakers: string[] }[] = [];
  let position = 0;
  for (const block of blocksOf(conversation(said, 180), 32_000)) {
    await diarization.push(block);
    position += block.length / 16_000;
    const turns = await diarization.turnsBetween(position - 2, position);
    for (const { start, end } of said.filter((s) => s.end <= position && s.end > position - 2)) {
      const at = (Math.max(start, position - 2) + end) / 2;
      sent.push({ at, speakers: turns.filter((t) => t.start <= at && at < t.end).map((t) => t.speaker) });
    }
  }
  const whole = await diarization.finish();
  const renamed = sent.filter(({ at, speakers }) => {
    const later = whole.filter((t) => t.start <= at && at < t.end).map((t) => t.speaker);
    return speakers.join() !== later.join();
  });
  assert(sent.length > 30, `${sent.length}`);
  assert.deepEqual(renamed, []);
});

test('a stream labels a sentence without waiting for audio after it', async () => {
  const diarization = createOnlineDiarization(scriptedVoices(), optionsWith());
  await diarization.push(conversation([{ speaker: 0, start: 0, end: 3 }], 3));
  assert.deepEqual(labelsOf(await diarization.turnsBetween(1, 3)), ['A']);
});

test('a quarter of an hour never compares all of its voices, and hears 30 s at most at once, and no second twice', async () => {
  const model = scriptedVoices();
  const turns = await turnsIn(inTurns(4, 900), 900, { model });
  assert.deepEqual(labelsOf(turns), ['A', 'B', 'C', 'D']);
  assert(model.longest.segmentation <= 480_000 && model.longest.embeddings <= 480_000);
  assert(model.calls.windows < 60 / 1.2 + 900 / 2.4, `${model.calls.windows} windows`);
  assert(model.calls.voices > BUDGETS.speakers.maxPoints);
  // The last window ends with the audio, and may begin before the end of what was heard.
  assert(model.calls.secondsInChunk <= 910, `${model.calls.secondsInChunk} s`);
});

test('in a file a word between two turns is said by the nearer speaker, also where that one speaks next', async () => {
  const said = [
    { speaker: 0, start: 0, end: 4 },
    { speaker: 1, start: 12.2, end: 20 },
  ];
  const pass = await createSpeakerPass(scriptedVoices(), {
    request: { known: [], count: { min: 1, max: 15 } },
    references: [],
    atOnce: false,
    signal: new AbortController().signal,
  });
  for (const block of blocksOf(conversation(said, 20))) await pass.push(block);
  const of = (start: number, end: number): UnnumberedSegment => {
    const text = ` from ${start}`;
    const measures = { seek: 0, temperature: 0, avgLogprob: 0, compressionRatio: 1, noSpeechProb: 0 };
    return { start, end, text, words: [{ text, start, end, tokens: [] }], language: 'en', ...measures };
  };
  async function* segments() {
    for (const [start, end] of [
      [1, 2],
      [4.5, 5],
      [11.6, 12.1],
      [13, 14],
    ] as const)
      yield of(start, end);
  }
  const speakers: (string | undefined)[] = [];
  for await (const { speaker } of pass.label(segments())) speakers.push(speaker);
  assert.deepEqual(speakers, ['A', 'A', 'B', 'B']);
});
