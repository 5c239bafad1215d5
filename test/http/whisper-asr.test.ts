/** The interface of whisper-asr-webservice: parameters in the query, bare samples, and its five outputs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChunkOptions } from '../../src/engine/types.ts';
import { detectedSchema, whisperSchema } from '../../src/http/openapi/openapi.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { wav } from '../wav.ts';
import { type Gateway, heard, json, type Script, startGateway, toneWav, until } from './harness.ts';

/** The samples of a wav file alone, as Bazarr sends them. */
const bare = (wav: Buffer) => new Uint8Array(wav.subarray(44));
const speech = toneWav(2);

function ask(gateway: Gateway, path: string, audio: Uint8Array, part = 'audio_file'): Promise<Response> {
  const body = new FormData();
  body.append(part, new Blob([new Uint8Array(audio)]), part);
  return fetch(gateway.base + path, { method: 'POST', body });
}

const text = async (answer: Promise<Response>) => {
  const response = await answer;
  assert.equal(response.status, 200, await response.clone().text());
  return [response.headers.get('Content-Type') ?? '', await response.text()];
};

const PLAIN = 'text/plain; charset=utf-8';

test('each output has its form, the text is the one of a transcription', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' Hello there.', 500) });
  const get = (output: string) => text(ask(gateway, `/asr?encode=false&language=en${output}`, bare(speech)));
  assert.deepEqual(await get(''), [PLAIN, 'Hello there.\n']);
  assert.deepEqual(await get('&output=txt'), [PLAIN, 'Hello there.\n']);
  assert.deepEqual(await get('&output=tsv'), [PLAIN, 'start\tend\ttext\n0\t1000\tHello there.\n']);
  const [type, srt = ''] = await get('&output=srt');
  assert.equal(type, PLAIN);
  assert.match(srt, /^1\n00:00:00,000 --> 00:00:01,000\nHello there\.\n/);
  assert.match(
    (await get('&output=vtt'))[1] ?? '',
    /^WEBVTT\n\n00:00:00\.000 --> 00:00:01\.000\nHello there\./,
  );
  const parsed = whisperSchema.parse(JSON.parse((await get('&output=json'))[1] ?? ''));
  assert.deepEqual([parsed.text, parsed.language, parsed.segments.length], ['Hello there.', 'en', 1]);
  assert(!('words' in (parsed.segments[0] ?? {})));
  const words = JSON.parse((await get('&output=json&word_timestamps=true'))[1] ?? '').segments[0].words;
  assert.deepEqual(
    words.map(({ word, start, end }: any) => [word, start, end]),
    [
      ['Hello', 0, 0.5],
      ['there.', 0.5, 1],
    ],
  );
});

test('srt and vtt are subtitles, however long a sentence is', async () => {
  const sentence = `${Array.from({ length: 30 }, (_, i) => ` word${i}`).join('')}.`;
  await using gateway = await startGateway({ transcribe: async () => heard(sentence, 500) });
  for (const output of ['srt', 'vtt']) {
    const [, cues = ''] = await text(ask(gateway, `/asr?language=en&output=${output}`, toneWav(16)));
    const lines = cues.split('\n').filter((line) => line.includes('word'));
    assert.equal(lines[0]?.startsWith('word0 word1 '), true, cues);
    assert(lines.length >= 5 && lines.every((line) => line.length <= 42), cues);
    const asked = `/asr?language=en&output=${output}&max_line_width=20&max_line_count=1`;
    const [, narrow = ''] = await text(ask(gateway, asked, toneWav(16)));
    const bodies = narrow.split('\n\n').map((cue) => cue.split(/ --> .*\n/)[1]?.trim() ?? '');
    assert(bodies.join('').includes('word29.') && bodies.every((body) => /^.{0,20}$/.test(body)), narrow);
  }
});

test('bare samples are 16 kHz mono, and with any other encode the container says what they are', async () => {
  const seconds: number[] = [];
  const transcribe: Script['transcribe'] = async (samples) => {
    seconds.push(samples.length / 16_000);
    return heard(' Hello.');
  };
  await using gateway = await startGateway({ transcribe });
  for (const [query, audio] of [
    ['?encode=false', bare(toneWav(3))],
    ['', toneWav(3)],
    ['?encode=true', toneWav(3)],
    ['?encode=', toneWav(3)],
  ] as const)
    assert.equal((await ask(gateway, `/asr${query}`, audio)).status, 200, query);
  assert.deepEqual(
    seconds.map((sec) => Math.round(sec)),
    [3, 3, 3, 3],
  );
});

test('task, language and initial prompt reach the model, and what has no meaning here harms nothing', async () => {
  const asked: ChunkOptions[] = [];
  const transcribe: Script['transcribe'] = async (_samples, options) => {
    asked.push(options);
    return heard(' Hello.');
  };
  await using gateway = await startGateway({ transcribe });
  const all = '?task=translate&language=de&initial_prompt=Voxgate&vad_filter=false&video_file=a%2Fb.mkv&x=y';
  assert.equal((await ask(gateway, `/asr${all}`, speech)).status, 200);
  const [options] = asked;
  assert.deepEqual([options?.translate, options?.language, options?.prompt], [true, 'de', 'Voxgate']);
});

test('diarize names the speakers in every output, as the other paths do, and their number is asked for', async () => {
  const call = wav(conversation(inTurns(2, 12), 12));
  const said = Array.from({ length: 24 }, (_, i) => ` w${i}${i === 23 ? '.' : ''}`).join('');
  const transcribe = async () => heard(said, 500);
  await using gateway = await startGateway({ speakers: scriptedVoices(), transcribe });
  const get = async (query: string) => (await text(ask(gateway, `/asr?${query}`, call)))[1] ?? '';
  assert.match(await get('diarize=true'), /^A: w0 .*\nB: w8 .*\nA: w16 /);
  assert.match(await get('diarize=True&output=SRT'), /\nA: w0 .*\n\n2\n.*\nB: w8 /);
  assert.match(await get('diarize=1&output=vtt'), /<v A>w0 .*\n\n.*\n<v B>w8 /);
  assert.match(await get('diarize=1&output=tsv'), /\n\d+\t\d+\tA: w0 .*\n\d+\t\d+\tB: w8 /);
  const { segments } = whisperSchema.parse(JSON.parse(await get('diarize=1&output=json&word_timestamps=1')));
  assert.deepEqual(
    segments.map((segment: any) => [segment.speaker, segment.words[0].speaker]),
    [
      ['A', 'A'],
      ['B', 'B'],
      ['A', 'A'],
    ],
  );
  assert.match(await get('diarize=1&max_speakers=1'), /^A: w0 .* w23\.\n$/);
  for (const [query, param] of [
    ['diarize=1&min_speakers=3&max_speakers=2', 'min_speakers'],
    ['diarize=1&max_speakers=many', 'max_speakers'],
  ]) {
    const { error } = await json(await ask(gateway, `/asr?${query}`, call));
    assert.deepEqual([error.code, error.param], ['invalid_value', param]);
  }
});

test('a parameter that is sent twice with one value is one, in any case', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' Hello there.', 500) });
  const twice =
    '?output=TXT&output=txt&task=transcribe&task=Transcribe&language=en&language=en&encode=false&encode=False';
  assert.deepEqual(await text(ask(gateway, `/asr${twice}`, bare(speech))), [PLAIN, 'Hello there.\n']);
  const words = '?output=json&word_timestamps=true&word_timestamps=true&encode=true&encode=true';
  const { segments } = JSON.parse((await text(ask(gateway, `/asr${words}`, speech)))[1] ?? '');
  assert.equal(segments[0].words.length, 2);
});

test('a mistake is the envelope of the house, and names the parameter', async () => {
  await using gateway = await startGateway();
  for (const [query, audio, part, code, param] of [
    ['?output=pdf', speech, 'audio_file', 'invalid_value', 'output'],
    ['?task=sing', speech, 'audio_file', 'invalid_value', 'task'],
    ['?task=transcribe&task=translate', speech, 'audio_file', 'invalid_value', 'task'],
    ['?encode=true&encode=false', speech, 'audio_file', 'invalid_value', 'encode'],
    ['?word_timestamps=1&word_timestamps=0', speech, 'audio_file', 'invalid_value', 'word_timestamps'],
    ['?language=klingon', speech, 'audio_file', 'invalid_value', 'language'],
    ['', speech, 'file', 'missing_file', 'audio_file'],
    ['', Buffer.alloc(0), 'audio_file', 'empty_file', 'audio_file'],
    ['?encode=false', Buffer.alloc(0), 'audio_file', 'empty_file', 'audio_file'],
    ['?encode=true', bare(speech), 'audio_file', 'unsupported_format', 'file'],
  ] as const) {
    const answer = await ask(gateway, `/asr${query}`, audio, part);
    const { error } = await json(answer);
    assert.deepEqual([answer.status, error.code, error.param], [400, code, param], query);
  }
  await until('nothing of the uploads is left', () => gateway.uploads().length === 0);
});

/** Spoken at two words a second: fewer would look like words that were missed, and repeated ones like a loop. */
const SENTENCE =
  ' a stranger finds every room by its name and sees on one screen what each of them does because nobody else will explain it';
const WORDS = [...SENTENCE.split(/(?= )/), ...SENTENCE.toUpperCase().split(/(?= )/)];

test('the language is that of the first 30 s of speech, and the rest is not heard', async () => {
  let chunks = 0;
  const transcribe: Script['transcribe'] = async (samples, { words }) => {
    assert(words, 'without times it is not known how much speech was heard');
    chunks += 1;
    return heard(WORDS.slice(0, Math.floor(samples.length / 8000)).join(''), 500);
  };
  await using gateway = await startGateway({ transcribe });
  const answer = await ask(gateway, '/detect-language?encode=false', bare(toneWav(300)));
  assert.deepEqual(detectedSchema.parse(await json(answer)), {
    detected_language: 'english',
    language_code: 'en',
    confidence: 1,
  });
  assert(chunks >= 2 && chunks <= 6, `${chunks} chunks of 28 s were heard of 5 minutes`);
  assert.equal(gateway.app.slot.status().holder, null);
  const silence = await ask(gateway, '/detect-language?encode=false', new Uint8Array(64_000));
  assert.equal((await json(silence)).confidence, 0);
});

test('they are counted as transcriptions, wait for the slot like them, and want a key where there is one', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_WAIT_SEC: '60' } });
  {
    using _held = gateway.app.slot.take('tts', 'holder');
    assert.equal((await ask(gateway, '/asr', speech)).status, 503);
  }
  assert.equal((await ask(gateway, '/asr', speech)).status, 200);
  await until('both are reported', () => gateway.exchanges.length === 2);
  assert.deepEqual(
    gateway.exchanges.map(({ category, class: as }) => `${category} ${as}`),
    ['asr 503-busy', 'asr 2xx'],
  );
  await using closed = await startGateway({ env: { SVC_API_KEY: 'secret' } });
  for (const path of ['/asr', '/detect-language'])
    assert.equal((await ask(closed, path, speech)).status, 401);
});
