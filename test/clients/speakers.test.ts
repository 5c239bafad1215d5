/** OpenAI's own packages ask who said what, and read the answers and the stream into their own types. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import OpenAI from 'openai';
import { heard, startGateway } from '../http/harness.ts';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { wav } from '../wav.ts';
import { pythonBin } from './python.ts';

/** Two speakers take turns of 4 s; every half second has a word. */
const CALL = wav(conversation(inTurns(2, 12), 12));
const WORDS = Array.from({ length: 24 }, (_, i) => `w${i}${i === 23 ? '.' : ''}`);
const ANNA = wav(conversation([{ speaker: 1, start: 0, end: 3 }], 3));
const REFERENCE = `data:audio/wav;base64,${ANNA.toString('base64')}`;

const start = () =>
  startGateway({
    speakers: scriptedVoices(),
    transcribe: async () => heard(WORDS.map((word) => ` ${word}`).join(''), 500),
  });

const said = (from: number, to: number) => WORDS.slice(from, to).join(' ');
const EXPECTED = [
  ['seg_001', 'A', said(0, 8)],
  ['seg_002', 'Anna', said(8, 16)],
  ['seg_003', 'A', said(16, 24)],
];

test('the OpenAI package of npm reads who said what, with a known speaker by name', async () => {
  await using gateway = await start();
  const { transcriptions } = new OpenAI({
    baseURL: `${gateway.base}/v1`,
    apiKey: 'none',
    maxRetries: 0,
  }).audio;
  const ask = () => ({
    model: 'gpt-4o-transcribe-diarize',
    file: new File([Uint8Array.from(CALL)], 'call.wav'),
    chunking_strategy: 'auto' as const,
    known_speaker_names: ['Anna'],
    known_speaker_references: [REFERENCE],
  });

  // The package has the type, but gives it for no format.
  const answer: unknown = await transcriptions.create({ ...ask(), response_format: 'diarized_json' });
  const whole = answer as OpenAI.Audio.TranscriptionDiarized;
  const rows = whole.segments.map(({ id, speaker, text }) => [id, speaker, text]);
  assert.deepEqual(rows, EXPECTED);
  assert(whole.segments.every(({ start, end, type }) => start < end && type === 'transcript.text.segment'));
  assert.deepEqual([whole.task, whole.duration], ['transcribe', 12]);
  assert.equal(whole.text, EXPECTED.map(([, speaker, text]) => `${speaker}: ${text}`).join('\n'));

  const stream = await transcriptions.create({ ...ask(), response_format: 'diarized_json', stream: true });
  const segments: string[][] = [];
  let text = '';
  let done = '';
  for await (const event of stream) {
    if (event.type === 'transcript.text.segment') segments.push([event.id, event.speaker, event.text]);
    else if (event.type === 'transcript.text.delta') text += event.delta;
    else done = event.text;
  }
  assert.deepEqual(segments, EXPECTED);
  assert.deepEqual([text, done], [WORDS.join(' '), WORDS.join(' ')]);

  const file = ask().file;
  const more = { model: 'whisper-1', response_format: 'verbose_json' as const, diarize: true };
  const verbose = await transcriptions.create({
    ...more,
    file,
    timestamp_granularities: ['word', 'segment'],
  });
  const speakers = (list: object[] = []) => list.map((of) => (of as { speaker?: string }).speaker).join('');
  assert.equal(speakers(verbose.segments), 'ABA');
  assert.equal(speakers(verbose.words), 'AAAAAAAABBBBBBBBAAAAAAAA');
});

test('the OpenAI package of PyPI reads who said what, with a known speaker by name', async () => {
  const bin = await pythonBin();
  await using gateway = await start();
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-speakers-'));
  try {
    const clip = join(folder, 'call.wav');
    writeFileSync(clip, CALL);
    const script = new URL('openai_speakers.py', import.meta.url).pathname;
    const asked = [gateway.base, clip, REFERENCE, JSON.stringify(EXPECTED)];
    const { stdout } = await promisify(execFile)(join(bin, 'python'), [script, ...asked]);
    assert.equal(stdout.trim(), 'ok');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
