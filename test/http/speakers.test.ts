/** Who said what, as clients see it: formats, events, known voices, refusals. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conversation, inTurns, type Said, scriptedVoices } from '../voices.ts';
import { steady, wav } from '../wav.ts';
import { form, type Gateway, heard, json, post, type Script, startGateway, until } from './harness.ts';

/** Two speakers take turns of 4 s. Every half second has a word, and all of them together are one sentence. */
const SAID = inTurns(2, 12);
const CALL = wav(conversation(SAID, 12));
const TEXT = Array.from({ length: 24 }, (_, i) => ` w${i}${i === 23 ? '.' : ''}`).join('');

const withSpeakers = (script: Script = {}) =>
  startGateway({ speakers: scriptedVoices(), transcribe: async () => heard(TEXT, 500), ...script });

const dataUrl = (samples: Float32Array) => `data:audio/wav;base64,${wav(samples).toString('base64')}`;
const voice = (speaker: number, seconds: number) =>
  dataUrl(conversation([{ speaker, start: 0, end: seconds }], seconds));

/** The form with several values of a field. */
function formOf(fields: Record<string, string | string[]>, file: Uint8Array = CALL): FormData {
  const data = form(file);
  for (const [name, values] of Object.entries(fields))
    for (const value of [values].flat()) data.append(name, value);
  return data;
}

const ask = (gateway: Gateway, fields: Record<string, string | string[]>, file?: Uint8Array) =>
  post(gateway, formOf(fields, file));

async function eventsOf(response: Response): Promise<any[]> {
  return (await response.text())
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)));
}

test('diarized_json is as OpenAI’s: its members, ids, labels, and a line of text for each turn', async () => {
  await using gateway = await withSpeakers();
  const response = await ask(gateway, { response_format: 'diarized_json' });
  assert.equal(response.status, 200);
  const body = await json(response);
  assert.deepEqual(Object.keys(body), ['task', 'duration', 'text', 'segments', 'usage']);
  assert.deepEqual(
    [body.task, body.duration, body.usage],
    ['transcribe', 12, { type: 'duration', seconds: 12 }],
  );
  assert.deepEqual(
    body.segments.map(({ start, end, text, ...rest }: any) => rest),
    ['A', 'B', 'A'].map((speaker, i) => ({ type: 'transcript.text.segment', id: `seg_00${i + 1}`, speaker })),
  );
  for (const [i, { start, end }] of body.segments.entries()) {
    assert(Math.abs(start - 4 * i) < 0.6 && Math.abs(end - 4 * i - 4) < 0.6, `${i}: ${start} to ${end}`);
  }
  const lines = body.text.split('\n');
  assert.deepEqual(
    lines.map((line: string) => line[0]),
    ['A', 'B', 'A'],
  );
  assert.equal(body.segments.map(({ text }: any) => text).join(' '), TEXT.trim());
  assert.match(lines[1], /^B: w8 w9 .* w15$/);
});

test('verbose_json with diarize has the speaker of segments and words, the turns and the speakers', async () => {
  await using gateway = await withSpeakers();
  const fields = { response_format: 'verbose_json', 'timestamp_granularities[]': ['word', 'segment'] };
  const plain = await json(await ask(gateway, fields));
  assert.deepEqual(gateway.loads, ['voice-activity', 'multilingual-base']);
  const body = await json(await ask(gateway, { ...fields, diarize: 'true' }));
  assert.equal(body.text, plain.text);
  assert.deepEqual(
    body.segments.map(({ id, speaker }: any) => [id, speaker]),
    [
      [0, 'A'],
      [1, 'B'],
      [2, 'A'],
    ],
  );
  assert.deepEqual(body.words.map(({ speaker }: any) => speaker).join(''), 'AAAAAAAABBBBBBBBAAAAAAAA');
  assert.deepEqual(
    body.turns.map(({ speaker, start, end }: any) => [speaker, Math.round(start), Math.round(2 * end) / 2]),
    [
      ['A', 0, 3.5],
      ['B', 4, 7.5],
      ['A', 8, 11.5],
    ],
  );
  assert.deepEqual(
    body.speakers.map(({ speaker, seconds }: any) => [speaker, Math.round(2 * seconds) / 2]),
    [
      ['A', 7],
      ['B', 3.5],
    ],
  );
  for (const name of ['turns', 'speakers']) assert(!(name in plain), name);
});

test('vtt has voice spans, srt and text have names before the words', async () => {
  await using gateway = await withSpeakers();
  const known = { 'known_speaker_names[]': 'R&D <1>', 'known_speaker_references[]': voice(1, 3) };
  const bodyIn = async (response_format: string, more = {}) =>
    (await ask(gateway, { response_format, ...known, ...more })).text();
  assert.match(await bodyIn('vtt'), /\n<v A>w0 .*\n[\s\S]*\n<v R&amp;D &lt;1&gt;>w8 /);
  assert.match(await bodyIn('srt'), /\nA: w0 .*\n[\s\S]*\nR&D <1>: w8 /);
  assert.match(await bodyIn('text'), /^A: w0 .*\nR&D <1>: w8 .*\nA: w16 .*\n$/);
  const cues = (await bodyIn('vtt', { segment_granularity: 'subtitle' })).match(/<v .*/g) ?? [];
  assert(cues.length >= 3);
  const words = (cue: string) =>
    [...cue.matchAll(/w(\d+)/g)].map(([, n]) => (Math.floor(Number(n) / 8) === 1 ? 'R' : 'A'));
  for (const cue of cues) assert.equal(new Set(words(cue)).size, 1, cue);
});

test('a stream sends each segment with its speaker after its text, and the whole has the same labels', async () => {
  await using gateway = await withSpeakers();
  const response = await ask(gateway, { model: 'gpt-4o-transcribe-diarize', stream: 'true' });
  const events = await eventsOf(response);
  const of = (type: string) => events.filter((event) => event.type === type);
  const [deltas, segments] = [of('transcript.text.delta'), of('transcript.text.segment')];
  const [done] = of('transcript.text.done');
  assert.deepEqual(
    segments.map(({ id, speaker }) => [id, speaker]),
    [
      ['seg_001', 'A'],
      ['seg_002', 'B'],
      ['seg_003', 'A'],
    ],
  );
  assert.deepEqual(
    deltas.map(({ segment_id }) => segment_id),
    segments.map(({ id }) => id),
  );
  assert.equal(deltas.map(({ delta }) => delta).join(''), done.text);
  assert.deepEqual(
    done.segments.map(({ speaker }: any) => speaker),
    ['A', 'B', 'A'],
  );
  assert.deepEqual(
    done.speakers.map(({ speaker }: any) => speaker),
    ['A', 'B'],
  );
});

test('json without a stream shows no speakers, so that nothing is computed for them', async () => {
  await using gateway = await withSpeakers();
  const response = await ask(gateway, { model: 'gpt-4o-transcribe-diarize' });
  assert.deepEqual(Object.keys(await json(response)), ['text', 'usage']);
  assert(!gateway.loads.includes('diarization'));
});

test('known speakers have their names, wherever they come first', async () => {
  await using gateway = await withSpeakers();
  const fields = {
    ...{ response_format: 'diarized_json', 'known_speaker_names[]': ['Anna', 'Ben'] },
    'known_speaker_references[]': [voice(4, 2), voice(1, 10)],
  };
  for (const more of [{}, { stream: 'true' }]) {
    const response = await ask(gateway, { ...fields, ...more });
    const segments =
      'stream' in more ? (await eventsOf(response)).at(-1).segments : (await json(response)).segments;
    assert.deepEqual(
      segments.map(({ speaker }: any) => speaker),
      ['A', 'Ben', 'A'],
    );
  }
  await until('the references are gone', () => gateway.uploads().length === 0);
});

test('a reference that cannot be used is a 400 that names it', async () => {
  await using gateway = await withSpeakers();
  const refusal = async (references: string[], names = references.map((_, i) => `n${i}`)) => {
    const response = await ask(gateway, {
      'known_speaker_names[]': names,
      'known_speaker_references[]': references,
      response_format: 'diarized_json',
    });
    const { error } = await json(response);
    assert.equal(response.status, 400, JSON.stringify(error));
    assert.equal(error.code, 'invalid_value');
    return `${error.param}: ${error.message}`;
  };
  const good = voice(0, 3);
  assert.match(
    await refusal([good, 'https://example.org/a.wav']),
    /^known_speaker_references: .*references\[1\]" .*2 to 10 s/,
  );
  assert.match(await refusal(['data:audio/wav;base64,!!']), /references\[0\]"/);
  assert.match(await refusal(['data:audio/wav,abc']), /references\[0\]"/);
  assert.match(await refusal([good, good, voice(0, 1.9)]), /references\[2\]" .*audio\/wav of 1\.9 s/);
  assert.match(await refusal([good, voice(0, 10.2)]), /references\[1\]" .*more than 10 s/);
  const silence = `data:audio/wav;base64,${wav(new Float32Array(3 * 16_000).fill(0.0005)).toString('base64')}`;
  assert.match(await refusal([good, silence]), /references\[1\]" .*audio\/wav of silence/);
  assert.match(await refusal([good, 'data:audio/wav;base64,AAAA']), /references\[1\]" .*not supported/);
  assert.match(await refusal([good, good, good, good, good]), /at most 4/);
  assert.match(await refusal([good], ['a', 'b']), /one reference for each of the 2/);
  assert.match(await refusal([good, good], ['a', 'a']), /^known_speaker_names: .*each name once/);
  assert.match(await refusal([good, good], ['a', 'a ']), /^known_speaker_names: .*each name once/);
  assert.match(await refusal([good], ['a\nb']), /^known_speaker_names: .*one line/);
  assert.match(await refusal([good], ['n'.repeat(101)]), /^known_speaker_names: .*at most 100/);
  assert.match(await refusal([`data:audio/wav;base64,${'A'.repeat(3 * 1024 * 1024)}`]), /at most 3145728/);
  const unseen = { 'known_speaker_names[]': 'Anna', 'known_speaker_references[]': voice(0, 1.9) };
  assert.equal((await ask(gateway, unseen)).status, 400, 'also where the answer shows no speakers');
  await until('the references are gone', () => gateway.uploads().length === 0);
  assert(
    gateway.logged.every((line) => !line.includes('UklG')),
    'a part of a voice is in the log',
  );
});

test('a reference of exactly 2 s or 10 s is taken, and no other field may be as long', async () => {
  await using gateway = await withSpeakers();
  const fields = { response_format: 'diarized_json', 'known_speaker_names[]': ['a', 'b'] };
  const references = [voice(0, 2), voice(1, 10)];
  const taken = await ask(gateway, { ...fields, 'known_speaker_references[]': references });
  assert.equal(taken.status, 200);
  const refused = await ask(gateway, { prompt: 'a'.repeat(64 * 1024 + 1) });
  assert.match((await json(refused)).error.message, /"prompt" .*at most 65536 bytes/);
});

test('the number of speakers may be given, and must make sense', async () => {
  await using gateway = await withSpeakers();
  const speakersWith = async (fields: Record<string, string>) => {
    const response = await ask(gateway, { response_format: 'diarized_json', ...fields });
    const body = await json(response);
    return response.status === 200
      ? new Set(body.segments.map((s: any) => s.speaker)).size
      : body.error.message;
  };
  assert.equal(await speakersWith({ num_speakers: '1' }), 1);
  assert.equal(await speakersWith({ max_speakers: '1' }), 1);
  assert.equal(await speakersWith({ min_speakers: '2', max_speakers: '20' }), 2);
  assert.match(await speakersWith({ num_speakers: '21' }), /"num_speakers" .*1 to 20/);
  assert.match(await speakersWith({ num_speakers: '0' }), /"num_speakers"/);
  assert.match(
    await speakersWith({ min_speakers: '3', max_speakers: '2' }),
    /"min_speakers" .*at most max_speakers \(2\)/,
  );
  assert.match(await speakersWith({ diarize: 'off' }), /"diarize"/);
});

test('a reference without speech is a 400 that names it, and gives the slot back', async () => {
  const isSpeech = (window: Float32Array) =>
    window.some((s) => s > 0.01) && window.every((s, i) => s * steady(1, i) >= 0);
  await using gateway = await withSpeakers({ isSpeech });
  const noise = dataUrl(new Float32Array(3 * 16_000).map((_, i) => 0.5 * Math.sin(i * i)));
  for (const fields of [
    { response_format: 'diarized_json' },
    { response_format: 'json' },
    { stream: 'true' },
  ] as Record<string, string>[]) {
    const known = {
      'known_speaker_names[]': ['Anna', 'Tom'],
      'known_speaker_references[]': [voice(1, 3), noise],
    };
    const response = await ask(gateway, { ...fields, ...known });
    assert.equal(response.status, 400);
    const { error } = await json(response);
    assert.deepEqual([error.code, error.param], ['invalid_value', 'known_speaker_references']);
    assert.match(error.message, /known_speaker_references\[1\]" .*a sound without speech/);
  }
  assert.equal((await ask(gateway, { diarize: '1', response_format: 'verbose_json' })).status, 200);
});

test('who is heard only where nothing is said is no speaker', async () => {
  const apart = wav(
    conversation(
      [
        { speaker: 0, start: 0, end: 4 },
        { speaker: 1, start: 8, end: 12 },
      ],
      12,
    ),
  );
  await using gateway = await withSpeakers({
    transcribe: async (samples) =>
      (samples.findLast((s) => s > 0) ?? 0) > 0.02 ? [] : heard(' w0 w1 w2 w3.', 500),
  });
  for (const stream of ['', 'true']) {
    const response = await ask(gateway, { diarize: '1', response_format: 'verbose_json', stream }, apart);
    const { turns, speakers } = stream === '' ? await json(response) : (await eventsOf(response)).at(-1);
    assert.deepEqual(
      speakers.map(({ speaker }: any) => speaker),
      ['A'],
    );
    assert(turns.length > 0 && turns.every(({ speaker }: any) => speaker === 'A'));
  }
  await using mute = await withSpeakers({ transcribe: async () => [] });
  const nobody = await json(await ask(mute, { diarize: '1', response_format: 'verbose_json' }));
  assert.deepEqual([nobody.text, nobody.speakers, nobody.turns], ['', [], []]);
});

test('silence has no segments and no speakers', async () => {
  await using gateway = await withSpeakers();
  const silence = wav(new Float32Array(5 * 16_000));
  const body = await json(await ask(gateway, { response_format: 'diarized_json' }, silence));
  assert.deepEqual([body.text, body.segments], ['', []]);
  const verbose = await json(await ask(gateway, { response_format: 'verbose_json', diarize: '1' }, silence));
  assert.deepEqual([verbose.turns, verbose.speakers], [[], []]);
});

test('no turn ends behind the audio', async () => {
  await using gateway = await withSpeakers();
  for (const seconds of [1.9, 2.87, 12]) {
    const file = wav(conversation([{ speaker: 0, start: 0, end: seconds }], seconds));
    const answer = await json(await ask(gateway, { response_format: 'verbose_json', diarize: '1' }, file));
    const [{ end } = { end: 0 }] = answer.turns;
    assert(end > seconds - 0.1 && end <= answer.duration, `${end} of ${answer.duration} s`);
    assert(answer.speakers[0].seconds <= answer.duration);
  }
});

test('no one gets the name of a known voice that was not heard', async () => {
  const deaf = { ...scriptedVoices(), segmentation: async () => new Float32Array(7 * 589) };
  await using gateway = await withSpeakers({ speakers: deaf, transcribe: async () => heard(' Yes.', 300) });
  const known = { 'known_speaker_names[]': 'A', 'known_speaker_references[]': voice(1, 3) };
  const file = wav(conversation([{ speaker: 0, start: 0, end: 1 }], 1));
  const body = await json(await ask(gateway, { response_format: 'diarized_json', ...known }, file));
  assert.deepEqual(
    body.segments.map(({ speaker }: any) => speaker),
    ['B'],
  );
});

test('words that no turn covers still have a speaker', async () => {
  const quiet: Said[] = [{ speaker: 0, start: 0, end: 0.3 }];
  await using gateway = await withSpeakers({ transcribe: async () => heard(' Yes.', 300) });
  const body = await json(
    await ask(gateway, { response_format: 'diarized_json' }, wav(conversation(quiet, 1))),
  );
  assert.deepEqual(
    body.segments.map(({ text, speaker }: any) => [text, speaker]),
    [['Yes.', 'A']],
  );
});
