/** Recordings of calls with one speaker on each channel, from a stereo file to the answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { interleave, wav } from '../wav.ts';
import {
  form,
  type Gateway,
  heard,
  json,
  post,
  type Script,
  startGateway,
  until,
  untilAborted,
} from './harness.ts';

/** Loudness stands for the voice: the scripted model hears the left speaker in loud speech, the right in quiet. */
const LOUD = 0.5;
const QUIET = 0.2;

/** Spans of a steady tone, in seconds, in 12 s of silence. */
function speech(spans: [start: number, end: number][], amplitude: number): Float32Array {
  const samples = new Float32Array(12 * 16_000);
  for (const [start, end] of spans)
    for (let i = start * 16_000; i < end * 16_000; i += 1)
      samples[i] = amplitude * Math.sin((2 * Math.PI * 440 * i) / 16_000);
  return samples;
}

const LEFT = speech([[0, 2], [8, 10]], LOUD); // biome-ignore format: a row of spans
const RIGHT = speech([[1, 6]], QUIET); // It begins while the left one speaks.
const CALL = wav(interleave(LEFT, RIGHT), 16_000, 2);

const byLoudness: NonNullable<Script['transcribe']> = async (samples) => {
  const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  const found = [LOUD, QUIET].findIndex((loudness) => Math.abs(peak - loudness) < 0.02);
  return heard([' I am left.', ' And I am right.'][found] ?? ` Mixed to ${peak.toFixed(2)}.`);
};

const start = (script: Script = {}) => startGateway({ transcribe: byLoudness, ...script });

function ask(gateway: Gateway, fields: Record<string, string | string[]>, file: Buffer = CALL) {
  const data = form(file, { speakers: 'channels' });
  for (const [name, values] of Object.entries(fields))
    for (const value of [values].flat()) data.append(name, value);
  return post(gateway, data);
}

const EXPECTED = [
  ['A', 0, 'I am left.'],
  ['B', 1, 'And I am right.'],
  ['A', 8, 'I am left.'],
];
const rowsOf = (segments: any[]) => segments.map((s) => [s.speaker, Math.round(s.start), s.text.trim()]);

test('each channel of a stereo file is a speaker, and the segments are in the order of their times', async () => {
  await using gateway = await start();
  const body = await json(await ask(gateway, { response_format: 'diarized_json' }));
  assert.deepEqual(rowsOf(body.segments), EXPECTED);
  assert.equal(body.text, 'A: I am left.\nB: And I am right.\nA: I am left.');
  assert.equal(body.duration, 12);
  assert(!gateway.loads.includes('diarization'), 'no voices are compared');

  const verbose = await json(await ask(gateway, { response_format: 'verbose_json' }));
  assert.deepEqual(rowsOf(verbose.segments), EXPECTED);
  assert.deepEqual(
    verbose.turns.map(({ speaker, start, end }: any) => [speaker, Math.round(start), Math.round(end)]),
    [
      ['A', 0, 2],
      ['B', 1, 6],
      ['A', 8, 10],
    ],
  );
  for (const [i, { speaker, seconds }] of verbose.speakers.entries()) {
    assert.equal(speaker, 'AB'[i]);
    assert(Math.abs(seconds - ([4, 5][i] ?? 0)) < 1, `${speaker}: ${seconds} s`);
  }
  const alone = await json(await ask(gateway, {}));
  assert.deepEqual(alone.text, 'I am left. And I am right. I am left.');
});

test('the speakers of the channels have the names of the request, in every format and as a stream', async () => {
  await using gateway = await start();
  const names = { 'known_speaker_names[]': ['Zoe', 'Adam'] };
  const bodyIn = async (response_format: string) =>
    (await ask(gateway, { ...names, response_format })).text();
  assert.equal(await bodyIn('text'), 'Zoe: I am left.\nAdam: And I am right.\nZoe: I am left.\n');
  assert.match(await bodyIn('vtt'), /<v Zoe>I am left\.\n[\s\S]*<v Adam>And I am right\./);
  assert.match(await bodyIn('srt'), /Zoe: I am left\.\n[\s\S]*Adam: And I am right\./);
  const events = await bodyIn('json').then(async () =>
    (await (await ask(gateway, { ...names, stream: 'true' })).text())
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => JSON.parse(line.slice(6))),
  );
  const segments = events.filter(({ type }) => type === 'transcript.text.segment');
  assert.deepEqual(
    segments.map(({ id, speaker }) => [id, speaker]),
    [
      ['seg_001', 'Zoe'],
      ['seg_002', 'Adam'],
      ['seg_003', 'Zoe'],
    ],
  );
});

test('a file that does not have two channels is refused, whatever the format of the answer', async () => {
  await using gateway = await start();
  const files = { 1: wav(LEFT), 4: wav(interleave(twice(LEFT), twice(RIGHT)), 16_000, 4) };
  for (const [channels, file] of Object.entries(files)) {
    for (const response_format of ['json', 'diarized_json']) {
      const response = await ask(gateway, { response_format }, file);
      const { error } = await json(response);
      assert.deepEqual([response.status, error.code, error.param], [400, 'invalid_value', 'speakers']);
      assert.match(error.message, new RegExp(`two channels for it, and this has ${channels}`));
    }
  }
  assert.equal(gateway.begun(), 0, 'it was refused before anything was heard');
});

test('mono that was written as stereo is refused as mono is, also as a stream', async () => {
  await using gateway = await start();
  const softer = (samples: Float32Array) =>
    samples.map((sample, i) => 0.7 * (samples[i - 800] ?? 0) + sample / 1e4);
  for (const right of [LEFT, softer(LEFT)]) {
    for (const fields of [{}, { stream: 'true' }, { response_format: 'diarized_json' }]) {
      const response = await ask(gateway, fields, wav(interleave(LEFT, right), 16_000, 2));
      const { error } = await json(response);
      assert.deepEqual([response.status, error.code, error.param], [400, 'invalid_value', 'speakers']);
      assert.match(error.message, /both channels of this hold the same sound/);
    }
  }
  assert.equal(gateway.begun(), 0, 'it was refused before anything was heard');
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
});

/** Both channels of a stereo sound are the same. */
function twice(samples: Float32Array): Float32Array {
  return interleave(samples, samples);
}

test('what contradicts two channels with one speaker each is refused', async () => {
  await using gateway = await start();
  const cases: [Record<string, string | string[]>, RegExp][] = [
    [{ 'known_speaker_names[]': ['Zoe'] }, /^known_speaker_names: .*two for speakers=channels/],
    [{ 'known_speaker_names[]': ['a', 'b', 'c'] }, /^known_speaker_names: .*two for speakers=channels/],
    [{ 'known_speaker_names[]': ['a', 'a'] }, /^known_speaker_names: .*each name once/],
    [{ 'known_speaker_references[]': 'data:audio/wav;base64,AAAA' }, /^known_speaker_references: .*none/],
    [{ num_speakers: '3' }, /^min_speakers: .*at most 2/],
    [{ max_speakers: '1' }, /^max_speakers: .*at least 2/],
    [{ diarize: 'false' }, /^diarize: .*on for speakers=channels/],
  ];
  for (const [fields, expected] of cases) {
    const { error } = await json(await ask(gateway, fields));
    assert.match(`${error?.param}: ${error?.message}`, expected);
  }
  const other = await json(await post(gateway, form(CALL, { speakers: 'voices' })));
  assert.match(other.error.message, /"speakers" .*Expected channels/);
  const fine = await ask(gateway, { num_speakers: '2', diarize: 'true', response_format: 'diarized_json' });
  assert.equal(fine.status, 200);
});

test('a channel without speech gives no segments, and no speaker', async () => {
  await using gateway = await start();
  const file = wav(interleave(new Float32Array(12 * 16_000), RIGHT), 16_000, 2);
  const body = await json(await ask(gateway, { response_format: 'verbose_json' }, file));
  assert.deepEqual(rowsOf(body.segments), [EXPECTED[1]]);
  assert.deepEqual(
    body.speakers.map(({ speaker }: any) => speaker),
    ['B'],
  );
});

test('a client that leaves while either channel is heard frees the slot', async () => {
  for (const channel of [0, 1]) {
    let begun = 0;
    await using gateway = await start({
      transcribe: (samples, ...rest) => {
        const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
        const isLeft = peak > (LOUD + QUIET) / 2;
        if (isLeft !== (channel === 0)) return byLoudness(samples, ...rest);
        begun += 1;
        return untilAborted(samples, ...rest);
      },
    });
    const client = new AbortController();
    const body = form(CALL, { speakers: 'channels' });
    const leaving = post(gateway, body, { signal: client.signal }).catch(() => null);
    await until('the channel is heard', () => begun > 0);
    assert.equal(gateway.app.slot.status().holder, 'asr');
    client.abort();
    await until('the slot is free', () => gateway.app.slot.status().holder === null);
    await until('the upload is gone', () => gateway.uploads().length === 0);
    await leaving;
  }
});

test('one channel of a stereo recording is heard where the request names it', async () => {
  await using gateway = await start();
  const hear = async (fields: Record<string, string>, file = CALL) =>
    json(await post(gateway, form(file, fields)));
  assert.equal((await hear({ channel: '0' })).text, 'I am left. I am left.');
  assert.equal((await hear({ channel: '1' })).text, 'And I am right.');
  assert.match((await hear({})).text, /Mixed/);
  for (const [fields, file, expected] of [
    [{ channel: '1' }, wav(LEFT), /"channel" .*two channels for it, and this has 1/],
    [{ channel: '2' }, CALL, /"channel" .*from 0 to 1/],
    [{ channel: '0', speakers: 'channels' }, CALL, /"channel" .*none for speakers=channels/],
  ] as const) {
    const { error } = await hear(fields, file);
    assert.deepEqual([error.code, error.param], ['invalid_value', 'channel']);
    assert.match(error.message, expected);
  }
});
