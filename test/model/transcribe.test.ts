/** The whole path runs with real weights: HTTP, decoding, voice activity, Whisper, words, formats. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { leastOf } from '../cost.ts';
import { form, json, toneWav, until } from '../http/harness.ts';
import { JFK, JFK_TEXT, MODEL, needsWeights, plain, type RealGateway, startRealGateway } from './gateway.ts';

let gateway: RealGateway;
let dir: string;
const clip = readFileSync(JFK);
/** The first id of Whisper's multilingual vocabulary that is no text. Timestamps are above it. */
const END_OF_TEXT = 50_257;

/** The ends of his words in seconds, by faster-whisper 1.2.1 (float32, greedy), which aligns as OpenAI's code does. */
const REFERENCE_ENDS = [
  0.52, 0.84, 1.18, 1.56, 2.1, 3.74, 4.24, 5.52, 5.76, 6.24, 6.62, 6.82, 7.08, 7.42, 8.46, 8.76, 9.04, 9.32,
  9.56, 9.78, 9.94, 10.36,
];

before(async () => {
  gateway = await startRealGateway();
  dir = mkdtempSync(join(tmpdir(), 'voxgate-clips-'));
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

const ask = (file: Uint8Array, fields: Record<string, string> = {}) =>
  fetch(`${gateway.base}/v1/audio/transcriptions`, {
    method: 'POST',
    body: form(file, { model: MODEL, ...fields }),
  });

test('the text of jfk is what he said, with the language given and detected', async (t) => {
  if (!needsWeights(t)) return;
  for (const fields of [{ language: 'en' }, {}]) {
    const answer = await json(await ask(clip, fields));
    assert.equal(plain(answer.text), plain(JFK_TEXT));
    assert.equal(answer.usage.seconds, 11);
  }
});

test('verbose_json has the language, sentences, words and times', async (t) => {
  if (!needsWeights(t)) return;
  const answer = await json(
    await ask(clip, { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' }),
  );
  assert.equal(answer.language, 'english');
  assert(answer.language_probability > 0.8);
  assert.equal(plain(answer.words.map((w: { word: string }) => w.word).join(' ')), plain(JFK_TEXT));
  let clock = 0;
  for (const { word, start, end } of answer.words) {
    assert(start >= clock - 0.001 && end >= start && end <= 11.01, `${word} ${start} ${end}`);
    clock = start;
  }
  // He pauses after "Americans" (about 2.2 to 3.2 s) and after "not" (about 4.4 to 5.3 s).
  const at = (text: string) => answer.words.find((w: { word: string }) => plain(w.word) === text);
  assert(at('americans').end < 2.6 && at('ask').start > 2.9, JSON.stringify(answer.words));
});

test('words end where the reference code says', async (t) => {
  if (!needsWeights(t)) return;
  const answer = await json(
    await ask(clip, { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' }),
  );
  const ends: number[] = answer.words.map(({ end }: { end: number }) => end);
  const near = ends.filter((end, i) => Math.abs(end - (REFERENCE_ENDS[i] ?? 0)) <= 0.04);
  // Before a pause the gateway lets a word end with its speech, and the reference code later.
  assert(ends.length === REFERENCE_ENDS.length && near.length >= 20, JSON.stringify(ends));
});

test('the same clip gives the same words in every container and under a wrong name', async (t) => {
  if (!needsWeights(t)) return;
  const encodings: [string, string[]][] = [
    ['wav', []],
    ['flac', []],
    ['ogg', ['-c:a', 'libvorbis']],
    ['opus', []],
    ['m4a', ['-c:a', 'aac']],
    ['webm', ['-c:a', 'libopus']],
    ['aiff', []],
  ];
  for (const [extension, args] of encodings) {
    const file = join(dir, `jfk.${extension}`);
    execFileSync('ffmpeg', ['-v', 'error', '-y', '-i', JFK, ...args, file]);
    const answer = await json(await ask(readFileSync(file), { language: 'en' }));
    assert.equal(plain(answer.text ?? JSON.stringify(answer)), plain(JFK_TEXT), extension);
  }
});

test('silence, a tone and noise give empty text', async (t) => {
  if (!needsWeights(t)) return;
  const noise = toneWav(6, 0);
  let state = 1;
  for (let i = 44; i < noise.length; i += 2) {
    state = (state * 1103515245 + 12345) % 2147483648;
    noise.writeInt16LE(Math.round((state / 2147483648 - 0.5) * 8000), i);
  }
  for (const [what, file] of [
    ['silence', toneWav(6, 0)],
    ['tone', toneWav(6)],
    ['noise', noise],
    ['10 ms', toneWav(0.01)],
  ] as const) {
    const response = await ask(file);
    assert.equal(response.status, 200, what);
    assert.equal((await json(response)).text, '', what);
  }
});

test('a truncated mp3 gives the words that are there', async (t) => {
  if (!needsWeights(t)) return;
  const answer = await json(await ask(clip.subarray(0, Math.floor(clip.length / 2)), { language: 'en' }));
  assert(plain(answer.text).startsWith('and so my fellow americans'), answer.text);
});

test('the first delta of a 60 s clip arrives before half of the whole time has passed', async (t) => {
  if (!needsWeights(t)) return;
  // He speaks so slowly that the first chunk would be heard in parts, too. A fifth faster he speaks as most people do.
  const once = join(dir, 'once.wav');
  const minute = join(dir, 'minute.wav');
  const ffmpeg = (...args: string[]) => execFileSync('ffmpeg', ['-v', 'error', '-y', ...args]);
  ffmpeg('-i', JFK, '-ar', '16000', '-af', 'atempo=1.2,apad=pad_dur=2', once);
  ffmpeg('-stream_loop', '5', '-i', once, '-t', '60', minute);
  const share = await leastOf(1 / 2, async () => {
    const startedAt = performance.now();
    const response = await ask(readFileSync(minute), { language: 'en', stream: 'true' });
    assert(response.body);
    let first = 0;
    for await (const _bytes of response.body) first ||= performance.now() - startedAt;
    const whole = performance.now() - startedAt;
    t.diagnostic(`first delta after ${first.toFixed(0)} ms of ${whole.toFixed(0)} ms`);
    return first / whole;
  });
  assert(share < 1 / 2, `${share} of the time`);
});

test('a stream has the words of the answer as a whole', async (t) => {
  if (!needsWeights(t)) return;
  const long = join(dir, 'thrice.wav');
  const loop = ['-stream_loop', '2', '-i', JFK, '-ar', '16000', '-af', 'atempo=1.2'];
  execFileSync('ffmpeg', ['-v', 'error', '-y', ...loop, long]);
  const file = readFileSync(long);
  const { text } = await json(await ask(file, { language: 'en' }));
  const events = await (await ask(file, { language: 'en', stream: 'true' })).text();
  const deltas = [...events.matchAll(/^data: (.*\.delta".*)$/gm)].map(
    ([, data = '']) => JSON.parse(data).delta,
  );
  assert(deltas.length > 1, events);
  assert.equal(deltas.join(''), text);
});

test('no request carries anything over to the next', async (t) => {
  if (!needsWeights(t)) return;
  const hear = async () => {
    const answer = await json(await ask(clip, { language: 'en', response_format: 'verbose_json' }));
    const segments = answer.segments.map(({ avg_logprob, ...rest }: Record<string, unknown>) => rest);
    return { answer: { ...answer, segments }, logprob: answer.segments[0].avg_logprob };
  };
  const first = await hear();
  assert.equal(first.answer.segments.length, 1);
  assert(first.answer.segments[0].tokens.every((id: number) => id < END_OF_TEXT));
  await ask(clip, { language: 'de', prompt: 'Bananen, Bananen', temperature: '0.9' });
  await ask(clip, { translate: 'true' });
  const second = await hear();
  assert.deepEqual(second.answer, first.answer);
  // Memory at other addresses may change the last digits of a sum.
  assert(Math.abs(second.logprob - first.logprob) < 1e-4, `${first.logprob}, then ${second.logprob}`);
});

test('a client that leaves in the middle stops the engine within 2 s, and the next gets the slot', async (t) => {
  if (!needsWeights(t)) return;
  const long = join(dir, 'long.wav');
  execFileSync('ffmpeg', ['-v', 'error', '-y', '-stream_loop', '5', '-i', JFK, '-ar', '16000', long]);
  // The model is in memory now, so the next request goes straight to inference.
  await (await ask(clip)).text();
  const client = new AbortController();
  const body = form(readFileSync(long), { model: MODEL });
  const url = `${gateway.base}/v1/audio/transcriptions`;
  const request = fetch(url, { method: 'POST', body, signal: client.signal });
  const { slot } = gateway.app;
  await until(
    'it is in the middle',
    () => slot.status().holder === 'asr' && slot.status().heldForMs > 200,
    10_000,
  );
  assert.equal((await ask(clip)).status, 503, 'the slot is held');
  client.abort();
  await assert.rejects(request, { name: 'AbortError' });
  const left = Date.now();
  for (;;) {
    const response = await ask(clip, { language: 'en' });
    if (response.status === 200) break;
    assert(Date.now() - left < 2000, 'the slot was not freed in time');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
